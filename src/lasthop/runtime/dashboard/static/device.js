/**
 * A page that is a device: it connects over WebSocket with the SDK, shows what arrives, answers, and
 * sends something to itself.
 */

import { connect } from "/sdk/index.js";

const SHOWN = 100;
const IDENTITY = "lasthop device";

const $ = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const element = (/** @type {string} */ tag, /** @type {string} */ text = "", /** @type {string} */ style = "") => {
  const made = document.createElement(tag);
  made.textContent = text;
  if (style) made.className = style;
  return made;
};

/** @typedef {{app: string, name: string, token?: string}} Identity */

/**
 * The identity that this page had last time, or a new one.
 * @returns {Identity}
 */
function identity() {
  try {
    const known = JSON.parse(localStorage.getItem(IDENTITY) ?? "null");
    if (known && typeof known.name === "string") return known;
  } catch {
    // The stored identity was edited: make a new one.
  }
  const made = { app: "default", name: `page-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}` };
  localStorage.setItem(IDENTITY, JSON.stringify(made));
  return made;
}

/** @param {string} text @param {"good" | "warn" | "bad" | "soft"} style */
function say(text, style) {
  $("status").textContent = text;
  $("status").className = `pill ${style}`;
}

/** @param {unknown} error */
function complain(error) {
  $("problem").textContent = error instanceof Error ? error.message : String(error);
  $("problem").hidden = false;
}

function gatewayUrl() {
  const path = document.body.dataset.websocket;
  if (!path) throw new Error("This gateway does not accept devices by WebSocket (setting http.websocket).");
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;
}

/** @param {string} name @param {string} app */
function showCommands(name, app) {
  const elsewhere = app === "default" ? "" : ` -H 'X-App: ${app}'`;
  const post = (/** @type {object} */ message) =>
    `curl ${location.origin}/v1/messages${elsewhere} -d '${JSON.stringify(message)}'`;
  $("curl").textContent = post({ device: name, title: "Hello", body: "from the terminal" });
  $("ask").textContent =
    `id=$(${post({ device: name, body: "Are you there?", reply_within: "5m" })} | sed 's/.*"id":"\\([^"]*\\).*/\\1/')\n` +
    `curl "${location.origin}/v1/messages/$id/reply?timeout=60"${elsewhere}`;
}

/** @param {import("/sdk/message.js").Message} message @param {import("/sdk/device.js").Device} device */
function show(message, device) {
  $("empty").hidden = true;
  const item = document.createElement("li");
  if (message.title) item.append(element("strong", message.title));
  let text;
  try {
    text = message.text;
  } catch {
    text = `${message.body.length} bytes of ${message.contentType}`;
  }
  item.append(element("p", text));
  const took = Math.max(0, Date.now() - message.publishedAt.getTime());
  const facts = [
    message.publishedAt.toLocaleTimeString(),
    took < 60_000 ? `${took} ms after it was accepted` : "",
    message.topic ? `topic ${message.topic}` : "",
    message.source ? `from ${message.source}` : "",
    message.redelivered ? "redelivered: this page was closed before it had handled the message" : "",
    message.id,
  ].filter(Boolean);
  item.append(element("p", facts.join(" · "), "soft small"));
  if (message.wantsReply) item.append(answerForm(message, device));
  $("messages").prepend(item);
  while ($("messages").children.length > SHOWN) $("messages").lastElementChild?.remove();
}

/** @param {import("/sdk/message.js").Message} message @param {import("/sdk/device.js").Device} device */
function answerForm(message, device) {
  const form = element("form", "", "inline");
  const label = element("label", "The sender waits for an answer");
  const input = document.createElement("input");
  input.name = "answer";
  input.required = true;
  label.append(input);
  form.append(label, element("button", "Answer"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const handle = await device.reply(message, input.value);
      form.replaceWith(element("p", `You answered: ${input.value}`, "small"));
      await handle.accepted();
    } catch (error) {
      complain(error);
    }
  });
  return form;
}

/** @param {Identity} who */
async function begin(who) {
  const { app, name, token } = who;
  const device = await connect({ url: gatewayUrl(), app, name, token, link: "browser" });
  $("name").textContent = name;
  showCommands(name, app);
  const look = () => {
    if (device.connected) {
      say("connected", "good");
      $("problem").hidden = true;
      $("entry").hidden = true;
      $("device").hidden = false;
    } else if (device.error) {
      const { code } = /** @type {{code?: string}} */ (device.error);
      say("refused", "bad");
      if (code === "unauthorized" || code === "not_found") $("entry").hidden = false;
      if (token || (code !== "unauthorized" && code !== "not_found")) complain(device.error);
    } else say(`not connected: ${device.problem}`, "warn");
  };
  device.onContact(look);
  device.onMessage((message) => show(message, device));
  device.onRefused((_id, refusal) => complain(refusal.detail));
  look();
  return device;
}

/** @param {() => import("/sdk/device.js").Device | null} current */
function listen(current) {
  let pushes = 0;
  $("push").addEventListener("click", async () => {
    const device = current();
    if (!device) return;
    pushes += 1;
    try {
      await device.send(`device:${device.name}`, `Push number ${pushes}, there and back.`, { title: "Hello from this page" });
    } catch (error) {
      complain(error);
    }
  });
  $("copy").addEventListener("click", async () => {
    const range = document.createRange();
    range.selectNodeContents($("curl"));
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
    try {
      await navigator.clipboard.writeText($("curl").textContent ?? "");
      $("copy").textContent = "Copied";
    } catch {
      $("copy").textContent = "Selected: copy it with the keyboard";
    }
  });
  $("subscribe").addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const topic = String(new FormData(form).get("topic"));
    try {
      const handle = await current()?.subscribe(topic);
      await handle?.accepted();
      $("topics").textContent = `${$("topics").textContent || "Subscribed to "}${topic} `;
      form.reset();
    } catch (error) {
      complain(error);
    }
  });
  $("forget").addEventListener("click", async () => {
    await current()?.close();
    localStorage.removeItem(IDENTITY);
    location.reload();
  });
}

/** @type {import("/sdk/device.js").Device | null} */
let device = null;
listen(() => device);
$("credentials").addEventListener("submit", async (event) => {
  event.preventDefault();
  const fields = new FormData(/** @type {HTMLFormElement} */ (event.target));
  const who = { app: String(fields.get("app")), name: String(fields.get("name")), token: String(fields.get("token")) };
  localStorage.setItem(IDENTITY, JSON.stringify(who));
  await device?.close();
  await start(who);
});

/** @param {Identity} who */
async function start(who) {
  try {
    device = await begin(who);
  } catch (error) {
    say("not started", "bad");
    complain(error);
  }
}

await start(identity());
