/**
 * A device of the JavaScript SDK on a clock that somebody else moves: one line of JSON in says what
 * happens and when, one line out tells what the device did, and when it wants to be woken.
 */

import { createInterface } from "node:readline";

import { FileInbox, connect } from "../../sdk/javascript/src/node.js";

let now = 0;
let done = [];

/** Timers on that clock. */
const timers = new Map();
let lastTimer = 0;
globalThis.setTimeout = (callback, wait) => {
  lastTimer += 1;
  timers.set(lastTimer, { at: now + wait, callback });
  return lastTimer;
};
globalThis.clearTimeout = (id) => timers.delete(id);

function fire() {
  for (;;) {
    const due = [...timers].filter(([, { at }]) => at <= now).sort(([, a], [, b]) => a.at - b.at)[0];
    if (!due) return;
    timers.delete(due[0]);
    due[1].callback();
  }
}

/** Links to the gateway, in the order in which they were dialled. */
const sockets = [];

class Socket {
  constructor() {
    this.bufferedAmount = 0;
    this.over = false;
    sockets.push(this);
    this.number = sockets.length;
    done.push(["dial", this.number]);
    queueMicrotask(() => this.onopen());
  }

  send(data) {
    if (!this.over) done.push(["bytes", this.number, Buffer.from(data).toString("hex")]);
  }

  close() {
    if (this.over) return;
    this.over = true;
    done.push(["close", this.number]);
  }
}

/** Nothing is told before what was written is on the disk. */
let writing = 0;

class WatchedInbox extends FileInbox {
  async apply(change) {
    writing += 1;
    try {
      await super.apply(change);
    } finally {
      writing -= 1;
    }
  }
}

async function rest() {
  let quiet = 0;
  while (quiet < 5) {
    await new Promise((resolve) => setImmediate(resolve));
    quiet = writing ? 0 : quiet + 1;
  }
}

let device;
let takesTime;
const leisure = new Promise((resolve) => (takesTime = resolve));

async function handle(message) {
  if (message.text.startsWith("later")) await leisure;
  done.push(["had", message.id, message.topic ?? message.source ?? "", message.text, message.redelivered]);
  if (message.replyBefore !== null) await device.reply(message, `re: ${message.text}`);
  if (message.title === "to be read") await device.read(message);
}

const verbs = {
  async start({ app, name, token, inbox, terms }) {
    const options = { url: "wss://gateway/hop", app, name, token, terms, link: "wifi", heartbeat: 60 };
    const backoff = { random: () => 0.5 };
    device = await connect({ ...options, WebSocket: Socket, inbox: new WatchedInbox(inbox), backoff, now: () => now });
    device.onMessage(handle);
    device.onRefused((id, refusal) => done.push(["heard", "refused", refusal.code]));
  },
  wake() {},
  arrived({ wire, data }) {
    const { buffer } = Uint8Array.from(Buffer.from(data, "hex"));
    if (!sockets[wire - 1].over) sockets[wire - 1].onmessage({ data: buffer });
  },
  broken({ wire }) {
    sockets[wire - 1].over = true;
    sockets[wire - 1].onclose({ reason: "" });
  },
  takeTime: () => takesTime(),
  call({ method, args }) {
    Promise.resolve(device[method](...args)).then(
      (answer) => method === "request" && done.push(["heard", "answered", answer.text]),
      (error) => done.push(["heard", "failed", error.code]),
    );
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { t, verb, ...rest_of_it } = JSON.parse(line);
  now = Math.floor(t / 1000);
  fire();
  await verbs[verb](rest_of_it);
  await rest();
  const next = [...timers.values()].reduce((first, { at }) => Math.min(first, at), Infinity);
  const wake = Number.isFinite(next) ? Math.ceil(Math.max(next, now)) * 1000 : null;
  process.stdout.write(`${JSON.stringify({ done, wake })}\n`);
  done = [];
}
process.exit(0);
