/** The inbox in a file: what was committed is there in the next life, whatever happened in between. */

import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { emptyState, nothingHeld } from "../src/change.js";
import { FileInbox } from "../src/inbox/file.js";

const change = (n, fields = {}) => ({
  n,
  state: { ...emptyState(), received: n, lastKey: (1n << 60n) + BigInt(n) },
  detached: false,
  stored: [],
  adopted: [],
  removed: [],
  keys: [],
  queued: [],
  renumbered: [],
  taken: [],
  ...fields,
});
const frame = { type: "message", seq: 0, key: 77n, topic: "t", headers: { inReplyTo: 5n }, body: Uint8Array.of(0, 255) };
const row = (position) => ({ position, number: position, frame, defaultType: "text/plain" });

function place(context) {
  const folder = mkdtempSync(join(tmpdir(), "lasthop-inbox-"));
  context.after(() => rmSync(folder, { recursive: true }));
  return join(folder, "inbox");
}

test("a new inbox holds nothing", async (context) => {
  const inbox = new FileInbox(place(context));
  assert.deepEqual(await inbox.load(), nothingHeld());
  await inbox.close();
});

test("an inbox is for its owner alone, also one that was not", async (context) => {
  const before = process.umask(0);
  context.after(() => process.umask(before));
  const path = place(context);
  writeFileSync(path, "", { mode: 0o644 });
  const inbox = new FileInbox(path, 1);
  await inbox.load();
  assert.equal(statSync(path).mode & 0o777, 0o600);
  for (let n = 1; n < 20; n += 1) await inbox.apply(change(n)); // It is written anew.
  assert.equal(statSync(path).mode & 0o777, 0o600);
  await inbox.close();
});

test("what was committed is there again, to the byte", async (context) => {
  const path = place(context);
  const inbox = new FileInbox(path);
  await inbox.load();
  await inbox.apply(change(1, { stored: [row(0), row(1)], queued: [{ id: "a", number: 3, frame }] }));
  await inbox.apply(change(2, { removed: [0], keys: ["x"], renumbered: [["a", 0]], adopted: [[1, 9]] }));
  await inbox.close();
  const held = await new FileInbox(path).load();
  assert.deepEqual(held.inbox, [{ ...row(1), number: 9 }]);
  assert.deepEqual(held.outbox, [{ id: "a", number: 0, frame }]);
  assert.deepEqual(held.youngKeys, ["x"]);
  assert.equal(held.state.lastKey, (1n << 60n) + 2n);
});

test("a line that was cut off never happened, and what follows does not run into it", async (context) => {
  const path = place(context);
  let inbox = new FileInbox(path);
  await inbox.load();
  await inbox.apply(change(1));
  await inbox.close();
  appendFileSync(path, '{"n":2,"state"');
  inbox = new FileInbox(path);
  assert.equal((await inbox.load()).state.received, 1);
  await inbox.apply(change(3));
  await inbox.close();
  assert.equal((await new FileInbox(path).load()).state.received, 3);
});

test("damage in the middle is said, not passed over", async (context) => {
  const path = place(context);
  writeFileSync(path, "not json\n{}\n");
  await assert.rejects(new FileInbox(path).load(), { code: "store_broken", message: /line 1/ });
});

test("one process at a time, and the lock of a dead one is nobody's", async (context) => {
  const path = place(context);
  const inbox = new FileInbox(path);
  await inbox.load();
  await assert.rejects(new FileInbox(path).load(), { code: "conflict" });
  await inbox.close();
  writeFileSync(`${path}.lock`, "999999999");
  await (await opened(path)).close();
});

async function opened(path, compactAfter) {
  const inbox = new FileInbox(path, compactAfter);
  await inbox.load();
  return inbox;
}

test("history is thrown away, and nothing else", async (context) => {
  const path = place(context);
  const inbox = await opened(path, 20);
  await inbox.apply(change(1, { stored: [row(5)], keys: ["k"] }));
  for (let n = 2; n <= 90; n += 1) await inbox.apply(change(n));
  await inbox.close();
  assert.ok(readFileSync(path, "utf8").split("\n").length < 22);
  const held = await new FileInbox(path).load();
  assert.deepEqual([held.state.received, held.inbox.length, held.youngKeys], [90, 1, ["k"]]);
});
