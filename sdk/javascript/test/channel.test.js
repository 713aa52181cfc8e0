/** One channel against a scripted socket: the handshake, the heartbeat, and how it ends. */

import assert from "node:assert/strict";
import test from "node:test";

import { Channel } from "../src/channel.js";
import { checkUnit, withChecksum } from "../src/wire/checksums.js";
import { Decoder } from "../src/wire/decoder.js";
import { Encoder } from "../src/wire/encoder.js";
import { VirtualTime } from "./time.js";

class ScriptedSocket {
  static last = null;

  constructor(url, protocol) {
    this.opened = { url, protocol };
    this.bufferedAmount = 0;
    this.units = [];
    this.closed = false;
    ScriptedSocket.last = this;
  }

  send(unit) {
    this.units.push(Uint8Array.from(unit));
  }

  close() {
    this.closed = true;
  }
}

const WELCOME = { type: "welcome", incarnation: new Uint8Array(8), epoch: 1, heartbeat: 30, features: 3, time: 5 };

function dial(context, welcome = WELCOME) {
  const time = new VirtualTime();
  context.after(() => time.restore());
  const heard = { welcomes: [], frames: [], ends: [] };
  const owner = {
    welcomed: (frame) => heard.welcomes.push(frame),
    received: (frames) => heard.frames.push(...frames),
    ended: (reason, last) => heard.ends.push([reason, last?.code ?? null]),
  };
  const hello = { type: "hello", app: "a", device: "d", window: { messages: 2, bytes: 100 } };
  const channel = new Channel(ScriptedSocket, "ws://x/hop", hello, owner, () => time.now);
  const socket = ScriptedSocket.last;
  const [encoder, decoder] = [new Encoder(), new Decoder()];
  const said = () => socket.units.splice(0).flatMap((unit) => decoder.decode(unit));
  const say = (...frames) => {
    for (const unit of encoder.units(frames)) socket.onmessage({ data: unit.buffer });
  };
  socket.onopen({});
  const [greeting] = said();
  if (welcome) say(welcome);
  return { time, channel, socket, heard, said, say, greeting };
}

const message = (seq, size = 1) => ({ type: "message", seq, key: null, topic: null, headers: null, body: new Uint8Array(size) });

test("it says hello first, and speaks the hop protocol", (context) => {
  const { socket, greeting, heard } = dial(context);
  assert.deepEqual(socket.opened, { url: "ws://x/hop", protocol: "hop" });
  assert.equal(greeting.device, "d");
  assert.equal(greeting.features, 3 + 32);
  assert.equal(heard.welcomes.length, 1);
});

test("it pings after the interval that the gateway decided, and gives up when nobody answers", (context) => {
  const { time, said, heard, socket } = dial(context);
  time.tick(29_000);
  assert.deepEqual(said(), []);
  time.tick(1_000);
  assert.deepEqual(said(), [{ type: "ping" }]);
  time.tick(45_000);
  assert.equal(said()[0].type, "close");
  assert.ok(socket.closed);
  time.tick(2_000);
  assert.deepEqual(heard.ends, [["nothing was heard for too long", 7]]);
});

test("an answered ping measures the way, and the next one comes an interval later", (context) => {
  const { time, said, say, channel } = dial(context, { ...WELCOME, time: undefined, features: 1 });
  time.tick(30_000);
  said();
  time.tick(80);
  say({ type: "pong" });
  assert.equal(channel.roundTrip, 80);
  time.tick(29_900);
  assert.deepEqual(said(), []);
  time.tick(100);
  assert.deepEqual(said(), [{ type: "ping" }]);
});

test("the first unit tells the gateway the time", (context) => {
  const { channel, said } = dial(context);
  channel.send([{ type: "ack", received: 1, delivered: 1, individual: [] }]);
  assert.deepEqual(said().map(({ type }) => type), ["ack", "time"]);
  channel.send([{ type: "ack", received: 2, delivered: 2, individual: [] }]);
  assert.deepEqual(said().map(({ type }) => type), ["ack"]);
});

test("a gateway that sends more than it may is told so", (context) => {
  const { say, said, heard } = dial(context);
  say(message(0), message(1));
  assert.equal(heard.frames.length, 2);
  say(message(2));
  assert.deepEqual(said().map(({ type, code }) => [type, code]), [["close", 10]]);
});

test("a window opens again with what was acknowledged", (context) => {
  const { say, heard, channel } = dial(context);
  say(message(0), message(1));
  channel.send([{ type: "ack", received: 2, delivered: 0, individual: [] }]);
  say(message(2));
  assert.equal(heard.frames.length, 3);
});

test("who says something before the WELCOME has not understood", (context) => {
  const { say, said } = dial(context, null);
  say({ type: "ping" });
  assert.deepEqual(said().map(({ type, code }) => [type, code]), [["close", 1]]);
});

test("nobody waits for a WELCOME for ever", (context) => {
  const { time, heard, said } = dial(context, null);
  time.tick(32_000);
  assert.equal(said()[0].code, 7);
  assert.equal(heard.ends.length, 1);
});

test("the gateway's last word is the reason", (context) => {
  const { say, heard, socket } = dial(context);
  say({ type: "close", code: 9, retryAfterMs: 500, reason: "shutting down" });
  assert.deepEqual(heard.ends, [["shutting down", 9]]);
  assert.ok(socket.closed);
  socket.onclose({ reason: "" });
  assert.equal(heard.ends.length, 1);
});

test("text is not what the hop protocol speaks", (context) => {
  const { socket, said } = dial(context);
  socket.onmessage({ data: "hello" });
  assert.deepEqual(said().map(({ type, code }) => [type, code]), [["close", 1]]);
});

test("with checksums nothing of a damaged unit is acted on, and the gateway is told", (context) => {
  const { socket, heard, channel } = dial(context, { ...WELCOME, features: 35 });
  const encoder = new Encoder();
  const [unit] = encoder.units([message(0), message(1)]);
  const whole = withChecksum(unit);
  socket.onmessage({ data: whole.slice().buffer });
  assert.equal(heard.frames.length, 2);
  socket.units.length = 0;
  channel.send([{ type: "ping" }]);
  assert.deepEqual(new Decoder().decode(checkUnit(socket.units[0]))[0], { type: "ping" });
  whole[3] ^= 1;
  socket.onmessage({ data: whole.buffer });
  assert.equal(heard.frames.length, 2);
  assert.ok(channel.damaged);
  const [last] = new Decoder().decode(checkUnit(socket.units.at(-1)));
  assert.equal(last.reason, "a checksum does not fit: the link has changed what was written");
});
