/** Several ways to one gateway: what is tried, what rests, and how a device moves from one to another. */

import assert from "node:assert/strict";
import test from "node:test";

import { Device } from "../src/device.js";
import { MemoryInbox } from "../src/inbox/memory.js";
import { Ways } from "../src/ways.js";
import { Decoder } from "../src/wire/decoder.js";
import { Encoder } from "../src/wire/encoder.js";
import { close } from "../src/wire/frames.js";
import { ModelGateway } from "./gateway.js";

const WIFI = { url: "ws://wifi/hop", link: "wifi" };
const MOBILE = { url: "ws://mno/hop", link: "mno" };

const ways = (...list) => new Ways(list, { random: () => 1 });

test("the preferred way comes first, and last what failed again and again", () => {
  const best = { url: "ws://best/hop", preference: 1 };
  const set = ways(WIFI, MOBILE, best);
  assert.deepEqual(set.due(0), [best, WIFI, MOBILE]);
  set.connecting(best, 0);
  set.ended(best, "no", 0);
  assert.deepEqual(set.due(0), [WIFI, MOBILE]);
  assert.deepEqual(set.due(500), [best, WIFI, MOBILE]);
  set.connecting(best, 500);
  set.ended(best, "no", 500);
  assert.deepEqual(set.due(5_000), [WIFI, MOBILE, best]);
});

test("in the first two minutes a way rests four seconds at the longest, and as long as it is asked to", () => {
  const set = ways(WIFI);
  let now = 0;
  const rests = [];
  while (now < 300_000) {
    assert.deepEqual(set.due(now), [WIFI]);
    set.connecting(WIFI, now);
    set.ended(WIFI, "no", now);
    rests.push(set.nextDue - now);
    now = set.nextDue;
  }
  assert.deepEqual(rests.slice(0, 5), [500, 1000, 2000, 4000, 4000]);
  assert.equal(Math.max(...rests), 60_000);
  set.connecting(WIFI, now);
  set.ended(WIFI, "full", now, { close: close(8, "full", 90_000) });
  set.hurry(now);
  assert.deepEqual(set.due(now + 89_000), []);
});

test("a refusal bars one way; another program bars all", () => {
  const set = ways(WIFI, MOBILE);
  set.connecting(WIFI, 0);
  set.ended(WIFI, "wrong token", 0, { close: close(4, "wrong token") });
  assert.equal(set.final, null);
  assert.deepEqual(set.due(1_000_000), [MOBILE]);
  set.connecting(MOBILE, 0);
  set.welcomed(MOBILE, 0);
  set.ended(MOBILE, "newer", 9_000, { close: close(6, "newer"), welcomed: true });
  assert.equal(set.final.code, "replaced");
});

test("a device has one way at least, and not too many", () => {
  assert.throws(() => ways(), RangeError);
  assert.throws(() => ways(...Array.from({ length: 33 }, () => WIFI)), RangeError);
});

/** Networks by URL: `works`, `refuses`, `hangs` or `silent`; returns the class of their sockets. */
function networks(gateway, states) {
  return class {
    static open = [];
    static dialled = [];

    constructor(url) {
      this.url = url;
      this.bufferedAmount = 0;
      this.encoder = new Encoder();
      this.decoder = new Decoder();
      this.constructor.dialled.push(url);
      if (states[url] === "refuses") setTimeout(() => this.onclose?.({ reason: "" }), 0);
      else if (states[url] !== "hangs") {
        this.constructor.open.push(this);
        setTimeout(() => this.onopen?.({}), 0);
      }
    }

    send(unit) {
      if (states[this.url] === "silent") return;
      const frames = this.decoder.decode(Uint8Array.from(unit));
      setTimeout(() => this.hear(frames), 0);
    }

    hear(frames) {
      for (const frame of frames) {
        if (frame.type === "hello") {
          const welcome = gateway.hello(frame);
          this.encoder.begin(welcome.resumed ? (frame.received ?? 0) : 0, welcome.received ?? 0, welcome.received ?? 0);
          this.decoder.begin(welcome.received ?? 0, frame.received ?? 0, frame.delivered ?? 0);
          this.say(welcome);
        } else if (frame.type === "message") {
          gateway.receive([frame]);
          this.say({ type: "ack", received: gateway.received, delivered: gateway.received, individual: [] });
        } else if (frame.type === "ack") gateway.receive([frame]);
      }
    }

    say(...frames) {
      for (const unit of this.encoder.units(frames)) this.onmessage?.({ data: Uint8Array.from(unit).buffer });
    }

    end() {
      this.onclose?.({ reason: "gone" });
    }

    close() {
      if (states[this.url] !== "silent") setTimeout(() => this.onclose?.({ reason: "" }), 0);
    }
  };
}

async function open(context, states) {
  const gateway = new ModelGateway();
  const WebSocket = networks(gateway, states);
  const device = await Device.open({
    ...WIFI,
    ways: [MOBILE],
    app: "a",
    name: "d",
    inbox: new MemoryInbox(),
    WebSocket,
    backoff: { first: 5, longest: 50 },
  });
  context.after(() => device.close());
  return { device, gateway, WebSocket };
}

const opened = (device) => device.ways.find(({ state }) => state === "open")?.way.url;

test("a way that does not work is followed by the next at once", async (context) => {
  const { device, WebSocket } = await open(context, { [WIFI.url]: "refuses" });
  await device.contact({ timeout: 2 });
  assert.equal(opened(device), MOBILE.url);
  assert.deepEqual(WebSocket.dialled, [WIFI.url, MOBILE.url]);
});

test("a connection that hangs does not hold up the next, and is given up", async (context) => {
  const started = Date.now();
  const { device } = await open(context, { [WIFI.url]: "hangs" });
  await device.contact({ timeout: 2 });
  assert.equal(opened(device), MOBILE.url);
  assert.ok(Date.now() - started >= 240, "the first had its time");
  assert.equal(device.ways.find(({ way }) => way.url === WIFI.url)?.state, "idle");
});

test("when a channel ends, the device goes on over another way", async (context) => {
  const states = {};
  const { device, WebSocket } = await open(context, states);
  await device.contact({ timeout: 2 });
  assert.equal(opened(device), WIFI.url);
  states[WIFI.url] = "refuses";
  WebSocket.open.at(-1).end();
  await device.contact({ timeout: 2 });
  const handle = await device.send("device:d", "hello");
  await handle.accepted({ timeout: 2 });
  assert.equal(opened(device), MOBILE.url);
});

test("when a way falls silent, the device moves within five seconds", async (context) => {
  const states = {};
  const { device, gateway } = await open(context, states);
  await device.contact({ timeout: 2 });
  states[WIFI.url] = "silent";
  const started = Date.now();
  const handle = await device.send("device:d", "hello?");
  await handle.accepted({ timeout: 5 });
  assert.ok(Date.now() - started < 5_000);
  assert.equal(opened(device), MOBILE.url);
  assert.deepEqual(gateway.taken.map(([, text]) => text), ["hello?"]);
});

test("a HELLO that nobody answers is given up for another way", async (context) => {
  const { device } = await open(context, { [WIFI.url]: "silent" });
  await device.contact({ timeout: 4 });
  assert.equal(opened(device), MOBILE.url);
});

test("an address that is none is an error of the device", async (context) => {
  const Refusing = class {
    constructor() {
      throw new SyntaxError("not an address");
    }
  };
  const device = await Device.open({ url: "x", app: "a", name: "d", inbox: new MemoryInbox(), WebSocket: Refusing });
  context.after(() => device.close());
  await assert.rejects(device.contact({ timeout: 2 }), /not an address/);
});
