/** What a damaging link makes of the gateway's words costs a channel; what the gateway refuses is final. */

import assert from "node:assert/strict";
import test from "node:test";

import { Device } from "../src/device.js";
import { MemoryInbox } from "../src/inbox/memory.js";
import { Decoder } from "../src/wire/decoder.js";
import { Encoder } from "../src/wire/encoder.js";
import { ModelGateway } from "./gateway.js";

const GARBAGE = {
  "an unknown frame": Uint8Array.of(0x7f, 1, 2, 3),
  "a segment": Uint8Array.of(0x81, 1, 2, 3),
  "an impossible acknowledgement": Uint8Array.of(0x43, 0xbf, 0x84, 0x3d, 0x01),
  "a skip that goes too far": Uint8Array.of(0x45, 0x00, 0xbf, 0x84, 0x3d),
  "half of a handshake": Uint8Array.of(0x41, 0x01),
  nothing: new Uint8Array(),
  "a text": "hello",
};

/** A gateway whose every channel is played by a script; returns the class of its sockets. */
function served(script) {
  return class {
    static dialled = [];

    constructor() {
      this.constructor.dialled.push(Date.now());
      this.bufferedAmount = 0;
      this.encoder = new Encoder();
      this.decoder = new Decoder();
      setTimeout(() => this.onopen?.({}), 0);
    }

    send(unit) {
      const frames = this.decoder.decode(Uint8Array.from(unit));
      setTimeout(() => script(this, frames), 0);
    }

    say(...frames) {
      for (const unit of this.encoder.units(frames)) this.raw(unit);
    }

    raw(unit) {
      this.onmessage?.({ data: typeof unit === "string" ? unit : Uint8Array.from(unit).buffer });
    }

    close() {
      setTimeout(() => this.onclose?.({ reason: "" }), 0);
    }
  };
}

/** Plays the model of a gateway; `damage` may say something else when a channel has been welcomed. */
function modelled(gateway, damage) {
  return served((socket, frames) => {
    for (const frame of frames) {
      if (frame.type === "hello") {
        const welcome = gateway.hello(frame);
        socket.encoder.begin(welcome.resumed ? (frame.received ?? 0) : 0, welcome.received ?? 0, welcome.received ?? 0);
        socket.decoder.begin(welcome.received ?? 0, frame.received ?? 0, frame.delivered ?? 0);
        socket.say(welcome, ...gateway.frames(2));
        damage(socket);
      } else if (frame.type === "ack" || frame.type === "message") gateway.receive([frame]);
    }
    socket.say(...gateway.frames(2));
  });
}

/** A device that is closed after its test. */
async function open(context, WebSocket, backoff = { first: 5, longest: 5 }) {
  const options = { url: "ws://x/hop", app: "a", name: "d", inbox: new MemoryInbox(), WebSocket, backoff };
  const device = await Device.open(options);
  context.after(() => device.close());
  return device;
}

async function until(happened) {
  for (let waited = 0; !happened(); waited += 1) {
    assert.ok(waited < 500, "it does not happen");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

for (const [what, garbage] of Object.entries(GARBAGE)) {
  test(`${what} makes a device dial again, and everything comes once and in order`, async (context) => {
    const gateway = new ModelGateway();
    const texts = Array.from({ length: 12 }, (_, number) => `m${number}`);
    for (const text of texts) gateway.publish(text);
    let damages = 0;
    const device = await open(
      context,
      modelled(gateway, (socket) => {
        if (damages < 3) socket.raw(garbage);
        damages += 1;
      }),
    );
    const got = [];
    device.onMessage((message) => got.push(message.text));
    await until(() => got.length >= texts.length && device.damaged === 3);
    assert.deepEqual(got, texts);
    assert.match(device.problem, /^what the gateway said could not be understood: ./);
    assert.equal(device.error, null);
  });
}

test("garbage again and again is dialled more and more seldom", async (context) => {
  const Babbling = served((socket) => socket.raw(GARBAGE["an unknown frame"]));
  const device = await open(context, Babbling, { first: 10, longest: 1000, random: () => 1 });
  await until(() => Babbling.dialled.length === 5);
  const pauses = Babbling.dialled.slice(1).map((at, index) => at - Babbling.dialled[index]);
  pauses.forEach((pause, index) => assert.ok(pause >= 10 * 2 ** index - 2, `${pauses}`));
  assert.equal(device.error, null);
});

for (const [code, name] of [
  [3, "unsupported_frame"],
  [4, "unauthorized"],
  [5, "not_found"],
]) {
  test(`a refusal with ${name} ends the device with its reason`, async (context) => {
    const Refusing = served((socket, [frame]) => {
      if (frame.type === "hello") socket.say({ type: "close", code, retryAfterMs: 0, reason: "so it is" });
    });
    const device = await open(context, Refusing);
    await until(() => device.error);
    assert.deepEqual([device.error.code, device.error.message, device.damaged], [name, "so it is", 0]);
  });
}

test("a gateway that let a device in and then does not understand it is dialled again", async (context) => {
  const gateway = new ModelGateway();
  let misheard = 0;
  const device = await open(
    context,
    modelled(gateway, (socket) => {
      if (misheard++ < 2) socket.say({ type: "close", code: 3, retryAfterMs: 0, reason: "an unknown frame" });
    }),
  );
  await until(() => misheard === 3 && device.connected);
  assert.equal(device.error, null);
});
