/**
 * A device that prints what it gets, a line of JSON for every message:
 *
 *     node examples/device.js --url ws://127.0.0.1:8080/hop --name phone --topic news --inbox phone.inbox
 *
 * With --echo it answers whoever waits for an answer with what they said.
 */

import { parseArgs } from "node:util";

import { connect } from "../src/node.js";

const { values } = parseArgs({
  options: {
    url: { type: "string", default: "ws://127.0.0.1:8080/hop" },
    app: { type: "string", default: "default" },
    name: { type: "string", default: "phone" },
    token: { type: "string" },
    inbox: { type: "string" },
    topic: { type: "string", multiple: true, default: [] },
    echo: { type: "boolean", default: false },
  },
});

const { url, app, name, token, inbox, topic, echo } = values;
const device = await connect({ url, app, name, token, inbox, backoff: { first: 50, longest: 2000 } });
for (const one of topic) await device.subscribe(one);
device.onRefused((id, refusal) => console.error(`refused ${id}: ${refusal.detail}`));
device.onMessage(async (message) => {
  const { id, title, redelivered } = message;
  console.log(JSON.stringify({ id, topic: message.topic, title, text: message.text, redelivered }));
  if (echo && message.wantsReply) await device.reply(message, `echo: ${message.text}`);
});
device.onContact(() => {
  if (device.error) {
    console.error(String(device.error));
    process.exitCode = 1;
  }
});
process.once("SIGTERM", () => device.close());
process.once("SIGINT", () => device.close());
