/** Exactly once and in order, whatever is lost, and whoever crashes: random schedules from seeds. */

import assert from "node:assert/strict";
import test from "node:test";

import { Rows } from "../src/inbox/memory.js";
import { keyTime } from "../src/message.js";
import { DEFAULT_TERMS, Session } from "../src/session.js";
import { ModelGateway } from "./gateway.js";
import { random } from "./random.js";

const SCHEDULES = Number(process.env.SCHEDULES ?? 150);
const TERMS = { ...DEFAULT_TERMS, app: "a", name: "d", window: { messages: 8, bytes: 4096 }, prefetch: 3, inboxMessages: 16, keys: 500 };

/** A device with its disk, which can crash at any commit. */
class World {
  constructor(seed) {
    this.random = random(seed);
    this.now = keyTime(1n << 50n);
    this.gateway = new ModelGateway();
    this.disk = new Rows();
    this.session = new Session(TERMS, this.disk.held());
    this.open = false;
    this.inHand = [];
    /** What the application had: ids in order, and which of them it may have had before. */
    this.handled = [];
    this.published = 0;
    this.sent = 0;
    this.queued = [];
    this.gateway.delivered = (text) => {
      assert.ok(this.handled.some((one) => one.text === text), `${text} is delivered before it was handled`);
    };
  }

  pick(most) {
    return Math.floor(this.random() * most);
  }

  commit() {
    const change = this.session.change();
    if (!change) return;
    this.disk.apply(structuredClone(change));
    this.session.committed(change.n);
  }

  /** One turn of the owner; the channel may break before the frames, or the answer, arrive. */
  turn({ breaks = false } = {}) {
    this.commit();
    const ready = this.session.ready(this.now);
    this.commit();
    this.inHand.push(...ready);
    assert.ok(this.inHand.length <= TERMS.prefetch, "more is handed over than may be");
    const frames = this.session.frames(true);
    this.session.events();
    if (!this.open || !frames.length) return;
    if (breaks) this.lose();
    if (breaks && this.random() < 0.5) return;
    this.feed([this.gateway.receive(frames)]);
  }

  lose() {
    this.open = false;
    this.session.lost();
  }

  feed(frames) {
    if (this.open) this.session.received(frames, this.now);
  }

  /** Some messages arrive, or the channel breaks after a part of them. */
  deliver(most) {
    if (!this.open) return;
    const frames = this.gateway.frames(most);
    const broken = this.random() < 0.1;
    this.feed(broken ? frames.slice(0, this.pick(frames.length + 1)) : frames);
    if (broken) this.lose();
  }

  dial() {
    this.session.lost();
    this.open = false;
    this.commit();
    const hello = this.session.hello();
    const welcome = this.gateway.hello(hello, { anew: this.epochs && this.random() < 0.2 });
    if (this.random() < 0.2) return; // The WELCOME got lost.
    this.open = this.session.welcomed(hello, welcome, this.now);
  }

  crash() {
    this.session = new Session(TERMS, structuredClone(this.disk.held()));
    this.open = false;
    this.inHand = [];
    // What was queued and not durable never was.
    const durable = new Set(this.disk.held().outbox.map((row) => new TextDecoder().decode(row.frame.body)));
    const taken = new Set(this.gateway.taken.map(([, text]) => text));
    this.queued = this.queued.filter((text) => durable.has(text) || taken.has(text));
  }

  handle() {
    const message = this.inHand.shift();
    if (!message || message.finished) return;
    this.handled.push({ text: message.text, redelivered: message.redelivered });
    this.session.finished(message);
  }

  send() {
    const text = `up ${this.sent++}`;
    try {
      this.session.queue({ headers: {}, body: new TextEncoder().encode(text) }, this.now);
      this.queued.push(text);
    } catch (error) {
      assert.equal(error.code, "overloaded");
    }
  }

  step({ crashes, restores, epochs }) {
    this.epochs = epochs;
    this.now += this.pick(50);
    const verb = this.pick(20);
    if (verb < 5) this.gateway.publish(`down ${this.published++}`);
    else if (verb < 8) this.send();
    else if (verb < 11) this.deliver(1 + this.pick(4));
    else if (verb < 14) this.turn({ breaks: this.random() < 0.1 });
    else if (verb < 16) this.handle();
    else if (verb === 16) this.dial();
    else if (verb === 17 && crashes) this.crash();
    else if (verb === 18 && restores && this.random() < 0.3) {
      this.lose();
      this.gateway.restore(this.saved ?? new ModelGateway().copy());
    } else if (verb === 19 && restores) this.saved = this.gateway.copy();
  }

  settle() {
    this.epochs = false;
    for (let round = 0; round < 400; round += 1) {
      if (!this.open) this.dial();
      this.feed(this.gateway.frames(4));
      this.turn();
      while (this.inHand.length) {
        const message = this.inHand.shift();
        if (message.finished) continue;
        this.handled.push({ text: message.text, redelivered: message.redelivered });
        this.session.finished(message);
      }
      this.turn();
      if (round % 20 === 19) this.dial();
    }
    // Another life finds nothing left to do.
    this.crash();
    assert.deepEqual([this.session.held, this.session.waiting], [0, 0]);
    const { state } = this.disk.held();
    assert.deepEqual([state.delivered, this.gateway.acknowledged], [state.received, state.received]);
  }
}

const numbers = (texts) => texts.map((text) => Number(text.split(" ")[1]));
const ascending = (list) => list.every((value, index) => index === 0 || list[index - 1] < value);

test("lost frames and channels: everything once and in order, both ways", () => {
  for (let seed = 1; seed <= SCHEDULES; seed += 1) {
    const world = new World(seed);
    for (let step = 0; step < 150; step += 1) world.step({});
    world.settle();
    const had = numbers(world.handled.map(({ text }) => text));
    assert.equal(had.length, world.published, `seed ${seed}: had ${had}`);
    assert.ok(ascending(had), `seed ${seed}: ${had}`);
    assert.ok(world.handled.every(({ redelivered }) => !redelivered), `seed ${seed}`);
    assert.deepEqual(world.gateway.taken.map(([, text]) => text), world.queued, `seed ${seed}`);
  }
});

test("crashes of the device: nothing is lost, and only what may have been seen is redelivered", () => {
  for (let seed = 1; seed <= SCHEDULES; seed += 1) {
    const world = new World(seed);
    for (let step = 0; step < 150; step += 1) world.step({ crashes: true });
    world.settle();
    const fresh = numbers(world.handled.filter(({ redelivered }) => !redelivered).map(({ text }) => text));
    assert.ok(ascending(fresh), `seed ${seed}: ${fresh}`);
    const all = new Set(numbers(world.handled.map(({ text }) => text)));
    assert.equal(all.size, world.published, `seed ${seed}`);
    const up = numbers(world.gateway.taken.map(([, text]) => text));
    assert.ok(ascending(up), `seed ${seed}: ${up}`);
    assert.deepEqual(world.gateway.taken.map(([, text]) => text), world.queued, `seed ${seed}`);
  }
});

test("new epochs amid crashes: what waits keeps its place, and what was taken is not sent again", () => {
  for (let seed = 1; seed <= SCHEDULES; seed += 1) {
    const world = new World(seed);
    for (let step = 0; step < 150; step += 1) world.step({ crashes: true, epochs: true });
    world.settle();
    const fresh = numbers(world.handled.filter(({ redelivered }) => !redelivered).map(({ text }) => text));
    assert.equal(new Set(fresh).size, fresh.length, `seed ${seed}: ${fresh}`);
    const all = new Set(numbers(world.handled.map(({ text }) => text)));
    assert.equal(all.size, world.published, `seed ${seed}`);
    assert.deepEqual(world.gateway.taken.map(([, text]) => text), world.queued, `seed ${seed}`);
    assert.equal(world.gateway.repeats, 0, `seed ${seed}`);
  }
});

test("an older copy of a device does not use numbers that the gateway has seen", () => {
  const world = new World(1);
  world.random = () => 0.5;
  world.dial();
  world.turn();
  const early = structuredClone(world.disk.held());
  world.send();
  world.turn();
  assert.equal(world.gateway.taken.length, 1);
  world.disk = new Rows(early);
  world.crash();
  world.dial();
  assert.equal(world.open, false);
  world.dial();
  world.now += 10;
  world.sent = 7;
  world.send();
  world.turn();
  assert.deepEqual(world.gateway.taken.map(([, text]) => text), ["up 0", "up 7"]);
});

test("a gateway that is an older copy of itself: what the device has had it does not get again", () => {
  for (let seed = 1; seed <= SCHEDULES; seed += 1) {
    const world = new World(seed);
    for (let step = 0; step < 150; step += 1) world.step({ restores: true });
    world.settle();
    const had = numbers(world.handled.map(({ text }) => text));
    assert.equal(new Set(had).size, had.length, `seed ${seed}: ${had}`);
    const there = new Set(world.gateway.mailbox.map(({ text }) => text));
    for (const text of there) assert.ok(world.handled.some((one) => one.text === text), `seed ${seed}: ${text}`);
    const up = world.gateway.taken.map(([, text]) => text);
    assert.equal(new Set(up).size, up.length, `seed ${seed}`);
  }
});

test("what is past its deadline is dropped, and the gateway hears so before the acknowledgement", () => {
  const world = new World(1);
  world.random = () => 0.5;
  world.dial();
  world.gateway.publish("down 0", { deliverWithin: 1000 });
  world.gateway.publish("down 1");
  world.now = keyTime(world.gateway.nextKey) + 5000;
  world.feed(world.gateway.frames(4));
  world.commit();
  const ready = world.session.ready(world.now);
  world.commit();
  const frames = world.session.frames(true);
  assert.deepEqual(ready.map(({ text }) => text), ["down 1"]);
  assert.deepEqual(frames.map(({ type }) => type), ["dropped", "ack"]);
  assert.deepEqual(frames[0].ranges, [[0, 1]]);
  assert.equal(world.session.events().find(({ kind }) => kind === "lapsed").message.text, "down 0");
  // Until a WELCOME has answered it, every HELLO says so again.
  world.session.lost();
  assert.deepEqual(world.session.hello().dropped, [[0, 1]]);
});

test("what comes again under another number is finished under that one", () => {
  const world = new World(1);
  world.random = () => 0.5;
  world.dial();
  world.gateway.publish("down 0", { deliverWithin: 1000 });
  const [first] = world.gateway.frames(1);
  world.now = keyTime(first.key);
  world.feed([first]);
  world.commit();
  // The gateway has taken it back, and gives it once more.
  world.feed([{ ...first, seq: 1 }]);
  world.commit();
  assert.deepEqual(world.session.frames(true).map(({ received, delivered }) => [received, delivered]), [[2, 1]]);
  world.now = keyTime(world.gateway.nextKey) + 5000;
  assert.deepEqual(world.session.ready(world.now), []);
  world.commit();
  assert.deepEqual(world.session.frames(true)[0].ranges, [[1, 2]]);
});

test("the first answer to a request counts, and any other is shown to nobody", () => {
  const world = new World(1);
  world.random = () => 0.5;
  world.dial();
  const headers = { to: "device:x", replyWithin: 1000 };
  const asked = world.session.queue({ headers, expects: true }, world.now);
  const answer = { inReplyTo: BigInt(`0x${asked}`), answer: true };
  world.gateway.publish("first", answer);
  world.gateway.publish("second", answer);
  world.gateway.publish("plain", { inReplyTo: 77n });
  world.feed(world.gateway.frames(4));
  world.commit();
  const ready = world.session.ready(world.now);
  assert.deepEqual(ready.map(({ text }) => text), ["plain"]);
  const answered = world.session.events().filter(({ kind }) => kind === "answered");
  assert.deepEqual(answered.map(({ message }) => message.text), ["first"]);
});

test("nothing is acknowledged before it is durable", () => {
  const world = new World(1);
  world.random = () => 0.5;
  world.dial();
  world.turn();
  world.gateway.publish("down 0");
  world.feed(world.gateway.frames(1));
  const change = world.session.change();
  assert.ok(change);
  assert.deepEqual(world.session.frames(true), []);
  world.session.committed(change.n);
  assert.deepEqual(world.session.frames(true), [{ type: "ack", received: 1, delivered: 0, individual: [] }]);
});

test("nothing is said in a new epoch before that is durable", () => {
  const world = new World(1);
  world.random = () => 0.5;
  world.send();
  world.commit();
  world.dial();
  assert.deepEqual(world.session.frames(true), []);
  world.commit();
  assert.deepEqual(world.session.frames(true).map(({ type }) => type), ["message"]);
});

test("nothing is sent before it is durable", () => {
  const world = new World(1);
  world.random = () => 0.5;
  world.dial();
  world.turn();
  world.send();
  assert.deepEqual(world.session.frames(true), []);
  world.commit();
  assert.deepEqual(world.session.frames(true).map(({ type, seq }) => [type, seq]), [["message", 0]]);
});

test("a skip closes the gap before what waits behind it", () => {
  const world = new World(1);
  world.random = () => 0.5;
  world.dial();
  world.gateway.publish("down 0");
  world.gateway.publish("down 1");
  const [, second] = world.gateway.frames(2);
  world.feed([second]);
  world.turn();
  assert.deepEqual(world.inHand, []);
  world.feed([world.gateway.cancel()]);
  world.turn();
  assert.deepEqual(world.inHand.map(({ text }) => text), ["down 1"]);
});

test("an impossible acknowledgement is an error of the gateway", () => {
  const world = new World(1);
  world.random = () => 0.5;
  world.dial();
  assert.throws(() => world.session.received([{ type: "ack", received: 5, delivered: 5, individual: [] }], 0), {
    code: "out_of_order",
  });
});

test("an inbox that is full pauses the gateway, and opens again at the half", () => {
  const world = new World(1);
  world.random = () => 0.5;
  world.dial();
  world.turn();
  for (let n = 0; n < 12; n += 1) world.gateway.publish(`down ${n}`);
  world.feed(world.gateway.frames(12));
  world.commit();
  const credit = () => world.session.frames(true).find(({ type }) => type === "credit");
  assert.deepEqual(credit(), { type: "credit", messages: 0, bytes: 0 });
  for (let n = 0; n < 12; n += 1) {
    for (const message of world.session.ready(world.now)) world.session.finished(message);
    world.commit();
  }
  assert.deepEqual(credit(), { type: "credit", messages: 8, bytes: 4096 });
});
