/** The page for sending: publish a message and follow it, cancel or replace it; ask a device something. */

import { replyTo, rest } from "../api.js";
import { card, field, h, stateOf, to } from "../dom.js";
import { doing } from "../forms.js";

export const title = "Send";

const PATIENCE = 60;

/** @param {FormData} fields */
function publication(fields) {
  const text = (/** @type {string} */ name) => String(fields.get(name) ?? "").trim();
  /** @type {Record<string, unknown>} */
  const message = { to: text("to"), body: String(fields.get("body") ?? "") };
  for (const name of ["title", "ttl", "delay", "replace_key", "queue"]) if (text(name)) message[name] = text(name);
  for (const name of ["priority", "rank"]) if (text(name)) message[name] = Number(text(name));
  return message;
}

/** @param {HTMLElement} place @param {string} id */
async function follow(place, id) {
  const states = h("p", null, "Accepted: it is durable. ");
  place.replaceChildren(h("p", null, "Message ", to("message", [id], h("code", null, id))), states);
  const status = await rest(`messages/${id}`, { query: { wait: "final", timeout: 20 } });
  if (!place.isConnected) return;
  const { total, states: counted } = status.summary;
  states.replaceChildren(
    total ? "" : "The message has no deliveries: no device matches its target.",
    ...Object.entries(counted).flatMap(([state, many]) => [stateOf(state), ` ${many} `]),
    total && !status.satisfied ? " Still under way. " : "",
    to("message", [id], "Its history"),
  );
}

/** @param {string} target */
function publishCard(target) {
  const said = h("div", { role: "status" });
  const form = h(
    "form",
    { class: "stack" },
    field("For (device:NAME, user:, topic:, group:, queue:NAME, or app:)", "to", { value: target, required: true, spellcheck: "false" }),
    field("Title", "title"),
    h("label", null, "Text", h("textarea", { name: "body" })),
    h(
      "details",
      null,
      h("summary", null, "More"),
      h(
        "div",
        { class: "fields" },
        field("Priority (0 to 9)", "priority", { type: "number", min: 0, max: 9 }),
        field("Rank", "rank", { type: "number", step: "any" }),
        field("Expires in (90s, 2h)", "ttl"),
        field("Not before (90s, 2h)", "delay"),
        field("Replace key", "replace_key"),
        field("Queue", "queue"),
      ),
    ),
    h("div", null, h("button", null, "Publish")),
  );
  doing(form, said, async (fields) => {
    const { id } = await rest("messages", { method: "POST", body: publication(fields) });
    // Following goes on while the next message is written.
    follow(said, id).catch((error) => said.append(h("p", { class: "problem" }, String(error))));
  });
  return card("Publish", form, said);
}

/** @param {string} target */
function askCard(target) {
  const said = h("div", { role: "status" });
  const form = h(
    "form",
    { class: "stack" },
    field("Device", "device", { value: target.startsWith("device:") ? target.slice(7) : "", required: true, spellcheck: "false" }),
    field("Question", "question", { required: true }),
    h("div", null, h("button", null, "Ask")),
  );
  doing(form, said, async (fields) => {
    const body = { device: String(fields.get("device")), body: String(fields.get("question")), reply_within: PATIENCE };
    const { id } = await rest("messages", { method: "POST", body });
    said.replaceChildren(h("p", null, "Asked. Waiting for the answer … ", to("message", [id], "its history")));
    const answer = await replyTo(id, PATIENCE);
    said.replaceChildren(h("p", null, "The device answered:"), h("pre", null, answer.slice(0, 4000)), h("p", null, to("message", [id], "The history of the question")));
  });
  return card("Ask a device something", form, said);
}

function changeCard() {
  const said = h("div", { role: "status" });
  const form = h(
    "form",
    { class: "stack" },
    field("Message id", "id", { required: true, spellcheck: "false" }),
    h("label", null, "New text (empty: cancel it)", h("textarea", { name: "body" })),
    h("div", null, h("button", { class: "quiet" }, "Cancel or replace")),
  );
  doing(form, said, async (fields) => {
    const id = encodeURIComponent(String(fields.get("id")).trim());
    const body = String(fields.get("body"));
    const done = body
      ? await rest(`messages/${id}`, { method: "PUT", body: { body } })
      : await rest(`messages/${id}`, { method: "DELETE" });
    const what = body ? `${done.replaced} replaced` : `${done.cancelled} cancelled`;
    said.replaceChildren(h("p", null, `${what}, ${done.too_late} too late. `, to("message", [body ? done.id : id], "Show the message")));
  });
  return card("Cancel or replace", h("p", { class: "soft" }, "A delivery that has been sent cannot be cancelled or replaced: the answer says for how many it was too late."), form, said);
}

/** @param {HTMLElement} root @param {string[]} path */
export async function render(root, [target = ""]) {
  root.append(h("h1", null, "Send"), h("div", { class: "cards" }, publishCard(target), askCard(target), changeCard()));
}
