/** The bytes that every implementation agrees on, in both directions. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { HopError } from "../src/errors.js";
import { Reader, Writer } from "../src/wire/bytes.js";
import { checkUnit, withChecksum } from "../src/wire/checksums.js";
import { Decoder } from "../src/wire/decoder.js";
import { Encoder } from "../src/wire/encoder.js";
import * as fields from "../src/wire/fields.js";

const FOLDER = new URL("../../../vectors/hop/", import.meta.url);
const load = (name) => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8"));
const unhex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const hex = (bytes) => Buffer.from(bytes).toString("hex");

const BIG = new Set(["key", "in_reply_to", "correlation"]);
const BYTES = new Set(["body", "incarnation"]);
const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

/** Our name and value for what a vector says. */
function fromVector(value) {
  const pairs = Object.entries(value).map(([name, item]) => {
    if (BIG.has(name)) return [camel(name), BigInt(item)];
    if (BYTES.has(name)) return [name, unhex(item)];
    if (name === "headers") return [name, fromVector(item)];
    if (name === "frame") return [name, frameOf(item)];
    if (name === "lanes") return [name, { seen: item.seen, lanes: (item.lanes ?? []).map((lane) => ({ ...CLAIM, ...lane })) }];
    return [camel(name), item];
  });
  return Object.fromEntries(pairs);
}

const CLAIM = { received: 0, delivered: 0, individual: [], finished: [] };

/** What a vector leaves out is at its default. */
const DEFAULTS = {
  message: { seq: null, key: null, topic: null, headers: null, body: new Uint8Array(0) },
  ack: { individual: [] },
  skip: { count: 1 },
  close: { retryAfterMs: 0, reason: "" },
  hello: { lowest: 1, highest: 1 },
  welcome: { version: 1 },
};
const frameOf = (value) => ({ ...DEFAULTS[value.type], ...fromVector(value) });

const TYPES = new Set(["message", "ack", "skip", "dropped", "credit", "ping", "pong", "time", "wanted", "close", "hello", "welcome", "lane"]);
const NAMES = {
  hello: new Set([...fields.HELLO.names, "type", "lowest", "highest"]),
  welcome: new Set([...fields.WELCOME.names, "type", "version"]),
  message: new Set(["type", "seq", "key", "topic", "headers", "body", "lane"]),
};
const HEADERS = new Set(fields.HEADERS.names);

/** Whether a case has words of a feature that this SDK does not announce, and so never hears. */
const foreign = (frames) =>
  frames.some(
    (frame) =>
      !TYPES.has(frame.type) ||
      (NAMES[frame.type] && Object.keys(frame).some((name) => !NAMES[frame.type].has(name))) ||
      Object.keys(frame.headers ?? {}).some((name) => !HEADERS.has(name)),
  );

/** A stream's frames have their lengths before them, and so has a bundle, behind its mark. */
const unitOf = (mapping, bytes) => (mapping === "stream" ? unhex(`00${bytes}`) : unhex(bytes));

function channel(make, context = {}) {
  const end = make(context.preferred);
  end.begin(context.next_seq ?? 0, context.received ?? 0, context.delivered ?? 0);
  return end;
}

for (const name of ["messages.json", "control.json", "handshake.json", "datagram.json"]) {
  const { mapping, cases } = load(name);
  assert.ok(cases.length > 0);
  for (const { name: title, frames, bytes, context, error, encode_only, decode_only } of cases) {
    if (error) continue;
    const values = frames.map(frameOf);
    const skip = foreign(values) && "a feature that this SDK does not announce";
    if (!encode_only) {
      test(`${name}: ${title}: bytes become the values`, { skip }, () => {
        assert.deepEqual(channel(() => new Decoder(), context).decode(unitOf(mapping, bytes)), values);
      });
    }
    if (!decode_only) {
      test(`${name}: ${title}: values become the bytes`, { skip }, () => {
        const encoder = channel((preferred) => new Encoder(preferred), context);
        let found = encoder.units(values).map(hex).join("");
        if (mapping === "stream") {
          // A frame on its own has lost its length: a bundle always has it.
          const twice = channel((preferred) => new Encoder(preferred), context);
          found = hex(twice.units([...values, { type: "ping" }])[0]).slice(2, -4);
        }
        assert.equal(found, bytes);
      });
    }
  }
}

for (const { name, bytes, error, context } of load("errors.json").cases) {
  test(`errors.json: ${name}`, () => {
    const decoder = channel(() => new Decoder(), context);
    assert.throws(() => decoder.decode(unitOf("stream", bytes)), (thrown) => {
      assert.ok(thrown instanceof HopError, String(thrown));
      assert.equal(thrown.code, error);
      return true;
    });
    assert.throws(() => decoder.decode(unhex("01")), /failed already/);
  });
}

for (const { name, bytes, error } of load("datagram.json").cases.filter((item) => item.error)) {
  test(`datagram.json: ${name}`, () => {
    assert.throws(() => new Decoder().decode(unhex(bytes)), { code: error });
  });
}

test("varint.json: every number has one form", () => {
  for (const { value, bytes, error } of load("varint.json").cases) {
    if (error) {
      assert.throws(() => new Reader(unhex(bytes)).bigVarint(), { code: error }, bytes);
      continue;
    }
    const number = BigInt(value);
    assert.equal(new Reader(unhex(bytes)).bigVarint(), number);
    assert.equal(hex(new Writer().bigVarint(number).take()), bytes);
    if (number <= BigInt(Number.MAX_SAFE_INTEGER)) {
      assert.equal(new Reader(unhex(bytes)).varint(), Number(number));
      assert.equal(hex(new Writer().varint(Number(number)).take()), bytes);
    } else {
      assert.throws(() => new Reader(unhex(bytes)).varint(), { code: "malformed_frame" });
    }
  }
});

const checksums = load("checksums.json");

for (const { name, frame, bytes } of checksums.handshake) {
  test(`checksums.json: ${name}`, () => {
    const value = frameOf(frame);
    assert.deepEqual(new Decoder().decode(unhex(bytes)), [value]);
    assert.equal(hex(new Encoder().encode(value)), bytes);
  });
}

for (const { name, content, bytes } of checksums.units) {
  test(`checksums.json: ${name}`, () => {
    assert.equal(hex(checkUnit(unhex(bytes))), content);
    assert.equal(hex(withChecksum(unhex(content))), bytes);
  });
}

for (const { name, handshake, unit } of checksums.damaged.filter(({ stream }) => stream === undefined)) {
  test(`checksums.json: ${name} is damaged`, () => {
    const read = () => (handshake === undefined ? checkUnit(unhex(unit)) : new Decoder().decode(unhex(handshake)));
    assert.throws(read, (thrown) => thrown instanceof HopError && thrown.code === "damaged_write");
  });
}

const lanes = load("lanes.json");

/** The two ends of a channel whose handshake allows lanes. */
function withLanes() {
  const decoder = new Decoder();
  decoder.allowLanes();
  return { encoder: new Encoder(), decoder };
}

for (const { name, frames, bytes, mapping = lanes.mapping, error, decode_only } of lanes.cases) {
  if (mapping === "unordered") continue; // This SDK has no such channel.
  test(`lanes.json: ${name}`, () => {
    const { encoder, decoder } = withLanes();
    if (error) {
      assert.throws(() => decoder.decode(unitOf(mapping, bytes)), { code: error });
      return;
    }
    const values = frames.map(frameOf);
    assert.deepEqual(decoder.decode(unitOf(mapping, bytes)), values);
    if (decode_only) return;
    const found = mapping === "stream" ? hex(encoder.units([...values, { type: "ping" }])[0]).slice(2, -4) : encoder.units(values).map(hex).join("");
    assert.equal(found, bytes);
  });
}

test("lanes.json: without the feature every word of lanes is an error", () => {
  assert.throws(() => new Decoder().decode(unhex("810261")), { code: "malformed_frame" });
  assert.throws(() => new Decoder().decode(unhex("4b02")), { code: "unsupported_frame" });
});
