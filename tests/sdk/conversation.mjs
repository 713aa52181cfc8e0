/**
 * Everything that two devices say to each other through a real gateway, over the API of the SDK.
 * Started by test_node.py with the gateway's address and a folder; complains by failing.
 */

import assert from "node:assert/strict";
import { join } from "node:path";

import { FileInbox, Reliability, connect } from "../../sdk/javascript/src/node.js";

const [url, folder] = process.argv.slice(2);
const open = (name, options = {}) =>
  connect({ url, app: "default", name, backoff: { first: 20, longest: 500 }, ...options });
const next = async (messages) => (await messages.next()).value;

const alice = await open("alice");
const bob = await open("bob", { inbox: join(folder, "bob") });
await Promise.all([alice.contact({ timeout: 30 }), bob.contact({ timeout: 30 })]);
assert.ok(alice.connected && alice.heartbeat > 0);

// A message, its status, and what it says of itself.
const forBob = bob.messages();
const handle = await alice.send("device:bob", "hello", { title: "Hi", priority: 7, rank: 1.5, headers: { colour: "red" } });
await handle.accepted({ timeout: 30 });
assert.equal(handle.status, "accepted");
const hello = await next(forBob);
assert.deepEqual(
  [hello.text, hello.title, hello.priority, hello.rank, hello.source, hello.extra, hello.redelivered, hello.contentType],
  ["hello", "Hi", 7, 1.5, "device:alice", { colour: "red" }, false, "text/plain; charset=utf-8"],
);
assert.ok(Math.abs(hello.publishedAt.getTime() - Date.now()) < 60_000);

// Bytes stay bytes, in order, also when there are many and large ones.
const sizes = [0, 1, 300, 70_000, 200_000, 2, 3];
for (const size of sizes) await alice.send("device:bob", new Uint8Array(size).fill(size & 0xff));
for (const size of sizes) {
  const message = await next(forBob);
  assert.equal(message.body.length, size);
  assert.equal(message.contentType, "application/octet-stream");
  assert.ok(message.body.every((byte) => byte === (size & 0xff)));
}

// A question and its answer, and one that nobody answers.
const asking = alice.request("device:bob", "2 + 2?", { timeout: 30 });
const question = await next(forBob);
assert.ok(question.wantsReply && question.replyBefore > Date.now());
await bob.reply(question, "4");
assert.equal((await asking).text, "4");
await assert.rejects(alice.request("device:bob", "nobody answers this", { timeout: 1 }), { code: /timeout|message_refused/ });
const late = await next(forBob);
await assert.rejects(bob.reply(late, "too late"), { code: "expired" });

// What the gateway refuses is said to who holds the handle, and to who waits.
const refused = await alice.send("device:nobody", "?");
await assert.rejects(refused.reached("refused", { timeout: 30 }).then(() => refused.accepted()), {
  code: "message_refused",
  reason: "not_found",
});
await assert.rejects(alice.request("device:nobody", "?", { timeout: 30 }), { code: "message_refused" });
assert.throws(() => alice.send("nobody", "?"), { code: "invalid_request" });
assert.throws(() => alice.send("device:bob", "?", { priority: 10 }), { code: "invalid_request" });

// Topics.
await (await bob.subscribe("news")).accepted({ timeout: 30 });
await alice.publish("news", "extra");
const extra = await next(forBob);
assert.deepEqual([extra.text, extra.topic], ["extra", "news"]);
await (await bob.unsubscribe("news")).accepted({ timeout: 30 });
await alice.publish("news", "nobody hears this");
await alice.send("device:bob", "best effort", { reliability: Reliability.BEST_EFFORT });
assert.equal((await next(forBob)).text, "best effort");
await (await bob.report({ battery: 0.5 })).accepted({ timeout: 30 });
await (await bob.read(extra)).accepted({ timeout: 30 });

// One way to take messages at a time.
assert.throws(() => bob.onMessage(() => {}), { code: "conflict" });
await forBob.return();

// An inbox is for one device at a time, and a device for one connection.
await assert.rejects(open("bob", { inbox: join(folder, "bob") }), { code: "conflict" });
const twin = await open("alice");
await twin.contact({ timeout: 30 });
await new Promise((resolve) => {
  const stop = alice.onContact(() => alice.error && (stop(), resolve()));
  if (alice.error) resolve();
});
assert.equal(alice.error.code, "replaced");
await assert.rejects(alice.send("device:bob", "too late"), { code: "replaced" });

// A handler that fails ends the device; its message comes again in the next life, and says so.
await twin.send("device:bob", "fragile");
await twin.send("device:bob", "after it");
const error = console.error;
console.error = () => {};
bob.onMessage((message) => {
  if (message.text === "fragile") throw new Error("the handler is not up to it");
});
await new Promise((resolve) => {
  bob.onContact(() => bob.error && bob.closed && resolve());
  if (bob.error) resolve();
});
await bob.close();
console.error = error;
const again = await open("bob", { inbox: join(folder, "bob") });
const later = again.messages();
const fragile = await next(later);
assert.deepEqual([fragile.text, fragile.redelivered], ["fragile", true]);
assert.equal((await next(later)).text, "after it");
await later.return();

// What is sent without contact leaves when there is some, also from another life.
const alone = await connect({ url: "ws://127.0.0.1:9/hop", app: "default", name: "carol", inbox: join(folder, "carol") });
const waiting = await alone.send("device:bob", "from the past");
await assert.rejects(waiting.accepted({ timeout: 0.1 }), { code: "timeout" });
await assert.rejects(alone.contact({ timeout: 0.1 }), { code: "timeout" });
assert.equal(alone.waiting, 1);
await alone.close();
const carol = await open("carol", { inbox: new FileInbox(join(folder, "carol")) });
await again.close();
const thirdLife = await open("bob", { inbox: join(folder, "bob") });
const found = [];
for await (const message of thirdLife.messages()) {
  found.push(message.text);
  if (message.text === "from the past") break;
}
// "after it" was never said to be done with: the loop was left before the next one was asked for.
assert.deepEqual(found, ["after it", "from the past"]);

// Expired is gone.
await thirdLife.close();
await (await carol.send("device:bob", "in a hurry", { expiresIn: 1 })).accepted({ timeout: 30 });
await (await carol.send("device:bob", "patient")).accepted({ timeout: 30 });
await new Promise((resolve) => setTimeout(resolve, 1010));
const fourthLife = await open("bob", { inbox: join(folder, "bob") });
const last = fourthLife.messages();
assert.equal((await next(last)).text, "from the past");
assert.equal((await next(last)).text, "patient");
await Promise.all([twin.close(), carol.close(), fourthLife.close()]);
console.log("all is said");
