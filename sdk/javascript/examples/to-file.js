/**
 * A device that writes every message to a file exactly once, a line of JSON for each:
 *
 *     node examples/to-file.js --url ws://127.0.0.1:8080/hop --name phone --inbox phone.inbox --output phone.jsonl
 *
 * A message whose handler was killed in the middle comes again, with `redelivered` set. Whether it had been
 * written before is seen in the file.
 */

import { appendFileSync, existsSync, readFileSync, truncateSync } from "node:fs";
import { parseArgs } from "node:util";

import { connect } from "../src/node.js";

const { values } = parseArgs({
  options: {
    url: { type: "string", default: "ws://127.0.0.1:8080/hop" },
    app: { type: "string", default: "default" },
    name: { type: "string", default: "phone" },
    token: { type: "string" },
    inbox: { type: "string", default: "phone.inbox" },
    output: { type: "string", default: "phone.jsonl" },
  },
});

const { url, app, name, token, inbox, output } = values;

const written = new Set();
if (existsSync(output)) {
  const bytes = readFileSync(output);
  const end = bytes.lastIndexOf("\n") + 1;
  truncateSync(output, end); // A line that a kill has cut off was not written.
  for (const line of bytes.subarray(0, end).toString().split("\n")) {
    if (line) written.add(JSON.parse(line).id);
  }
}

const device = await connect({ url, app, name, token, inbox, backoff: { first: 50, longest: 2000 } });
device.onMessage((message) => {
  const { id, topic, text, redelivered } = message;
  if (redelivered && written.has(id)) return;
  appendFileSync(output, `${JSON.stringify({ id, topic, text })}\n`);
  written.add(id);
});
device.onContact(() => {
  if (device.error) {
    console.error(String(device.error));
    process.exitCode = 1;
  }
});
process.once("SIGTERM", () => device.close());
process.once("SIGINT", () => device.close());
