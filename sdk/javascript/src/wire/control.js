/** Decodes and encodes the payloads of control frames, which need no context of the channel. */

import { malformed, unsupported } from "../errors.js";
import { Reader, Writer, decodeText, utf8 } from "./bytes.js";
import { checkSeal, insistOnSeal, sealed } from "./checksums.js";
import * as fields from "./fields.js";
import { Feature, MAX_RANGES, VERSION, ack } from "./frames.js";
import * as layout from "./layout.js";

/**
 * @typedef {import("./frames.js").Frame} Frame
 * @typedef {(payload: Uint8Array) => Frame} Read
 */

/** @param {number} count @param {string} name @param {Uint8Array} payload */
function exactly(count, name, payload) {
  const reader = new Reader(payload);
  const numbers = Array.from({ length: count }, () => reader.varint());
  if (!reader.done) throw malformed(`bytes follow the end of a ${name}`);
  return numbers;
}

/**
 * Return by how much an ADVANCE moves both counts.
 * @param {Uint8Array} payload
 */
export function readAdvance(payload) {
  if (!payload.length) return 1;
  const [count] = exactly(1, "ADVANCE", payload);
  if (count === 0) throw malformed("an ADVANCE does not advance");
  return count;
}

/** @type {Read} */
function hello(payload) {
  if (payload.length < 2) throw malformed("a HELLO has no versions");
  const [lowest, highest] = payload;
  if (!(lowest <= VERSION && VERSION <= highest)) {
    throw unsupported("no common version", { lowest, highest });
  }
  const checked = checkSeal(payload);
  const found = fields.HELLO.read(payload.subarray(2));
  insistOnSeal(Boolean((found.features ?? 0) & Feature.CHECKSUMS), checked);
  if (found.app === undefined || found.device === undefined) {
    throw malformed("a HELLO does not say which app and device it is from");
  }
  const named = found.incarnation !== undefined;
  if (named !== (found.epoch !== undefined)) {
    throw malformed("an incarnation and an epoch must come together or not at all");
  }
  if (!named && ["received", "delivered", "individual", "dropped", "lanes", "laneDropped"].some((name) => name in found)) {
    throw malformed("a HELLO has counts but names no epoch");
  }
  return /** @type {import("./frames.js").Hello} */ ({ type: "hello", ...found, lowest, highest });
}

/** @type {Read} */
function welcome(payload) {
  if (!payload.length) throw malformed("a WELCOME has no version");
  const [version] = payload;
  if (version !== VERSION) throw unsupported("no common version", { version });
  const checked = checkSeal(payload);
  const found = fields.WELCOME.read(payload.subarray(1));
  insistOnSeal(Boolean((found.features ?? 0) & Feature.CHECKSUMS), checked);
  if (found.incarnation === undefined || found.epoch === undefined) {
    throw malformed("a WELCOME does not say which incarnation and epoch hold");
  }
  return /** @type {import("./frames.js").Welcome} */ ({ type: "welcome", ...found, version });
}

/** @type {Read} */
function readClose(payload) {
  const reader = new Reader(payload);
  const code = reader.varint();
  const retryAfterMs = reader.varint();
  return { type: "close", code, retryAfterMs, reason: decodeText(reader.rest()) };
}

/** @type {Read} */
function readAck(payload) {
  const numbers = fields.readNumbers(payload, 2 + 2 * MAX_RANGES);
  if (numbers.length < 2) throw malformed("an ACK must have a received and a delivered count");
  const [received, delivered] = numbers;
  return ack(received, delivered, fields.absoluteRanges(received, numbers.slice(2)));
}

/** @type {Read} */
function unorderedAck(payload) {
  const numbers = fields.readNumbers(payload, 3 + 4 * MAX_RANGES);
  if (numbers.length < 2) throw malformed("an ACK must have a received and a delivered count");
  const [received, delivered, ...pairs] = numbers;
  const end = pairs.findIndex((number, index) => index % 2 === 0 && number === 0);
  if (end === pairs.length - 1 && end >= 0) throw malformed("a zero ends the pairs of an acknowledgement for nothing");
  const individual = fields.absoluteRanges(received, end < 0 ? pairs : pairs.slice(0, end));
  const finished = end < 0 ? [] : fields.absoluteRanges(delivered, pairs.slice(end + 1));
  if (Math.max(individual.length, finished.length) > MAX_RANGES) {
    throw malformed("there are more numbers than a list may have", { most: MAX_RANGES });
  }
  return { ...ack(received, delivered, individual), ...(finished.length ? { finished } : {}) };
}

/**
 * Return a frame that is about the numbers of a lane, except an ADVANCE.
 * @param {number} lane @param {number} kind @param {Uint8Array} payload
 * @returns {import("./frames.js").LaneFrame}
 */
export function readLaneFrame(lane, kind, payload) {
  if (kind === layout.LAST) {
    const [number] = exactly(1, "LAST", payload);
    return { type: "lane", lane, frame: { type: "last", number } };
  }
  const reader = kind === layout.ACK && lane & 1 ? unorderedAck : IN_LANES.get(kind);
  if (!reader) throw malformed("a frame of this type is never about a lane", { type: kind });
  const frame = /** @type {import("./frames.js").LaneFrame["frame"]} */ (reader(payload));
  return { type: "lane", lane, frame };
}

/** @type {Read} */
function skip(payload) {
  const numbers = fields.readNumbers(payload, 2);
  if (!numbers.length) throw malformed("a SKIP has no number");
  const count = numbers.length > 1 ? numbers[1] + 1 : 1;
  if (!Number.isSafeInteger(numbers[0] + count)) throw malformed("a SKIP counts beyond 53 bits");
  return { type: "skip", first: numbers[0], count };
}

/** @type {Read} */
function dropped(payload) {
  const ranges = fields.absoluteRanges(-1, fields.readNumbers(payload, 2 * MAX_RANGES));
  if (!ranges.length) throw malformed("a DROPPED has no number");
  return { type: "dropped", ranges };
}

/** @type {Read} */
function credit(payload) {
  const [messages, bytes] = exactly(2, "CREDIT", payload);
  return { type: "credit", messages, bytes };
}

/** @type {Read} */
function time(payload) {
  const [own, peer] = exactly(2, "TIME", payload);
  return { type: "time", own, peer };
}

/** @type {Read} */
function wanted(payload) {
  const links = fields.readTexts(payload);
  if (!links.length) throw malformed("a WANTED names no link");
  return { type: "wanted", links };
}

/** The largest number of ways that a gateway tells, and the most bytes of a URL. */
const MOST_WAYS = 16;
const MOST_URL = 512;

/** @type {Read} */
function ways(payload) {
  const texts = fields.readTexts(payload);
  if (texts.length % 2 || texts.length > 2 * MOST_WAYS) {
    throw malformed("a WAYS has a link and a URL for each of at most 16 ways");
  }
  /** @type {[string, string][]} */
  const pairs = [];
  for (let at = 0; at < texts.length; at += 2) pairs.push([texts[at], texts[at + 1]]);
  if (pairs.some(([, url]) => !url || utf8(url).length > MOST_URL)) {
    throw malformed("a WAYS has a URL that is empty or too long");
  }
  return { type: "ways", ways: pairs };
}

/** @type {Map<number, Read>} */
const IN_LANES = new Map([
  [layout.ACK, readAck],
  [layout.SKIP, skip],
  [layout.CREDIT, credit],
  [layout.DROPPED, dropped],
]);

/** @type {Map<number, Read>} */
const READERS = new Map([
  [layout.PING, (payload) => (exactly(0, "PING", payload), { type: "ping" })],
  [layout.PONG, (payload) => (exactly(0, "PONG", payload), { type: "pong" })],
  [layout.TIME, time],
  [layout.WANTED, wanted],
  [layout.WAYS, ways],
  [layout.HELLO, hello],
  [layout.WELCOME, welcome],
  [layout.CLOSE, readClose],
  [layout.ACK, readAck],
  [layout.SKIP, skip],
  [layout.CREDIT, credit],
  [layout.DROPPED, dropped],
]);

/**
 * Return the frame of a type, or null when the type is unknown and may be ignored.
 * @param {number} kind @param {Uint8Array} payload
 */
export function readControl(kind, payload) {
  const reader = READERS.get(kind);
  if (reader) return reader(payload);
  if (kind === layout.BUNDLE) throw malformed("a bundle is inside of another bundle");
  if (kind >= layout.CRITICAL) throw unsupported("a frame that must be understood has an unknown type", { type: kind });
  return null;
}

/**
 * Return the type byte and the payload of a frame.
 * @param {Frame | import("./frames.js").Last} frame @returns {Uint8Array}
 */
export function writeControl(frame) {
  const out = new Writer();
  switch (frame.type) {
    case "ping":
      return out.byte(layout.PING).take();
    case "pong":
      return out.byte(layout.PONG).take();
    case "time":
      return out.byte(layout.TIME).varint(frame.own).varint(frame.peer).take();
    case "ways":
      return out.byte(layout.WAYS).put(fields.writeTexts(frame.ways.flat())).take();
    case "wanted":
      return out.byte(layout.WANTED).put(fields.writeTexts(frame.links)).take();
    case "skip":
      if (frame.count < 1) throw new RangeError("a SKIP must close at least one number");
      out.byte(layout.SKIP).varint(frame.first);
      if (frame.count > 1) out.varint(frame.count - 1);
      return out.take();
    case "credit":
      return out.byte(layout.CREDIT).varint(frame.messages).varint(frame.bytes).take();
    case "last":
      return out.byte(layout.LAST).varint(frame.number).take();
    case "dropped":
      return out.byte(layout.DROPPED).put(fields.writeRanges(-1, frame.ranges)).take();
    case "close":
      out.byte(layout.CLOSE).varint(frame.code).varint(frame.retryAfterMs);
      return out.put(utf8(frame.reason)).take();
    case "hello":
      out.byte(frame.lowest ?? VERSION).byte(frame.highest ?? VERSION);
      return handshake(layout.HELLO, out.put(fields.HELLO.write(frame)).take(), frame.features);
    case "welcome":
      out.byte(frame.version ?? VERSION);
      return handshake(layout.WELCOME, out.put(fields.WELCOME.write(frame)).take(), frame.features);
    default:
      throw new TypeError(`this is not a control frame: ${frame.type}`);
  }
}

/** @param {number} kind @param {Uint8Array} payload @param {number} [features] */
function handshake(kind, payload, features = 0) {
  const content = features & Feature.CHECKSUMS ? sealed(payload) : payload;
  return new Writer().byte(kind).put(content).take();
}
