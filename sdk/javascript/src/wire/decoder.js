/**
 * Decodes units (WebSocket messages) to frames. One decoder serves one direction of one channel: it
 * undoes the shorthand of the peer's encoder, so that frames come out with absolute numbers. After
 * an error nothing more is read.
 */

import { HopError, frameTooLarge, malformed } from "../errors.js";
import { Reader, decodeText } from "./bytes.js";
import { readAdvance, readControl, readLaneFrame } from "./control.js";
import * as fields from "./fields.js";
import { DEFAULT_MAX_FRAME, Feature, MAX_TOPIC, ack } from "./frames.js";
import { LaneContexts, readLane } from "./lanes.js";
import * as layout from "./layout.js";

/** @typedef {import("./frames.js").Frame} Frame */

export class Decoder {
  /** @param {number} [maxFrame] the largest frame that we accept */
  constructor(maxFrame = DEFAULT_MAX_FRAME) {
    this.maxFrame = maxFrame;
    this._key = 0n;
    /** @type {string[]} */
    this._topics = [];
    this._failed = false;
    this._closed = false;
    this._next = 0;
    this._received = 0;
    this._delivered = 0;
    /** @type {LaneContexts | null} The contexts of lanes; null where the handshake allows none. */
    this._lanes = null;
  }

  /** Decode what is about lanes other than lane 0; without this it is an error. */
  allowLanes() {
    this._lanes ??= new LaneContexts();
  }

  /**
   * Start with the counts of the handshake: our received count, and the counts of the peer.
   * @param {number} next @param {number} received @param {number} delivered
   */
  begin(next, received, delivered) {
    this._next = next;
    this._received = received;
    this._delivered = delivered;
  }

  /**
   * Return the frames of one unit: a single one, or a bundle.
   * @param {Uint8Array} data @returns {Frame[]}
   */
  decode(data) {
    if (this._closed) return []; // Nothing follows a CLOSE; later units are ignored and are no fault.
    if (this._failed) throw malformed("the channel has failed already");
    try {
      if (data.length > this.maxFrame) {
        throw frameTooLarge("a unit is too large", { size: data.length, most: this.maxFrame });
      }
      if (!data.length) throw malformed("a unit is empty");
      /** @type {Frame[]} */
      const frames = [];
      if (data[0] !== layout.BUNDLE) this._frame(new Reader(data), frames);
      else this._bundle(new Reader(data, 1), frames);
      return frames;
    } catch (error) {
      this._failed = error instanceof HopError;
      throw error;
    }
  }

  /** @param {Reader} reader @param {Frame[]} frames */
  _bundle(reader, frames) {
    while (!reader.done && !this._closed) {
      const length = reader.varint();
      if (length > this.maxFrame) throw frameTooLarge("a frame is too large", { size: length, most: this.maxFrame });
      if (length === 0) throw malformed("a frame has no type");
      if (reader.pos + length > reader.end) throw malformed("a bundle ends inside a frame");
      this._frame(new Reader(reader.data, reader.pos, reader.pos + length), frames);
      reader.pos += length;
    }
  }

  /** @param {Reader} reader @param {Frame[]} frames */
  _frame(reader, frames) {
    const kind = reader.byte();
    if (kind >= layout.MESSAGE) {
      frames.push(this._message(kind, reader));
      return;
    }
    if (kind === layout.LANE && this._lanes) {
      frames.push(this._laneFrame(this._lanes, reader));
      return;
    }
    const payload = reader.rest();
    const frame = kind === layout.ADVANCE ? this._advance(payload) : readControl(kind, payload);
    if (!frame) return;
    frames.push(frame);
    if (frame.type === "ack") {
      this._received = frame.received;
      this._delivered = frame.delivered;
    } else if (frame.type === "close") {
      this._closed = true;
    } else if (frame.type === "welcome") {
      // Messages may follow in the same unit, numbered by what this frame says.
      const received = frame.received ?? 0;
      this.begin(frame.resumed ? this._next : 0, received, received);
      if ((frame.features ?? 0) & Feature.LANES) this.allowLanes();
    }
  }

  /** @param {number} flags @param {Reader} reader @returns {import("./frames.js").MessageFrame} */
  _message(flags, reader) {
    if (flags & layout.IN_LANE) return this._inLane(flags, reader);
    const seq = this._sequence(flags, reader);
    const key = this._messageKey(flags, reader);
    const topic = flags & layout.TOPIC ? this._topic(reader) : null;
    let headers = null;
    if (flags & layout.HEADERS) {
      const length = reader.varint();
      if (reader.pos + length > reader.end) throw malformed("a message ends early");
      const found = fields.HEADERS.read(reader.slice(length));
      if (Object.keys(found).length) headers = found;
    }
    return { type: "message", seq, key, topic, headers, body: reader.rest().slice() };
  }

  /** @param {number} flags @param {Reader} reader @returns {import("./frames.js").MessageFrame} */
  _inLane(flags, reader) {
    const lanes = this._lanes;
    if (!lanes) throw malformed("a message is in a lane, which the handshake did not allow");
    if (flags & layout.UNSEQUENCED) throw malformed("a message is marked as unsequenced but has a lane");
    const lane = readLane(reader);
    const [next, key] = [this._next, this._key];
    ({ next: this._next, key: this._key } = lanes.nextMessage(lane, key));
    const frame = this._message(flags & ~layout.IN_LANE, reader);
    lanes.noteMessage(lane, { next: this._next, key: this._key });
    [this._next, this._key] = [next, key];
    return { ...frame, lane };
  }

  /** @param {LaneContexts} lanes @param {Reader} reader @returns {import("./frames.js").LaneFrame} */
  _laneFrame(lanes, reader) {
    const lane = readLane(reader);
    const kind = reader.done ? layout.ADVANCE : reader.byte();
    const payload = reader.rest();
    if (kind !== layout.ADVANCE) {
      const read = readLaneFrame(lane, kind, payload);
      if (read.frame.type === "ack") {
        lanes.noteAck(lane, { received: read.frame.received, delivered: read.frame.delivered });
      }
      return read;
    }
    const frame = advanced(lanes.lastAcknowledged(lane), payload);
    lanes.noteAck(lane, { received: frame.received, delivered: frame.delivered });
    return { type: "lane", lane, frame };
  }

  /** @param {number} flags @param {Reader} reader */
  _sequence(flags, reader) {
    const numbered = flags & layout.NUMBERED;
    if (flags & layout.UNSEQUENCED) {
      if (numbered) throw malformed("a message is marked as unsequenced but has a number");
      return null;
    }
    const seq = numbered ? reader.varint() : this._next;
    if (!Number.isSafeInteger(seq + 1)) throw malformed("a message counts beyond 53 bits");
    this._next = seq + 1;
    return seq;
  }

  /** @param {number} flags @param {Reader} reader */
  _messageKey(flags, reader) {
    const form = flags & layout.KEY_BITS;
    if (form === layout.KEY_NONE) return null;
    let key;
    if (form === layout.KEY_ABSOLUTE) key = reader.bigVarint();
    else if (form === layout.KEY_NEXT) key = this._key + 1n;
    else key = forward(this._key, reader.bigVarint());
    if (key > layout.MAX_KEY) throw malformed("the number or key of a message exceeds 63 bits");
    this._key = key;
    return key;
  }

  /** @param {Reader} reader */
  _topic(reader) {
    const token = reader.varint();
    if (token) {
      if (token > this._topics.length) throw malformed("a topic's token was never defined", { token });
      return this._topics[token - 1];
    }
    const length = reader.varint();
    if (length > MAX_TOPIC) throw frameTooLarge("a topic is too long", { size: length, most: MAX_TOPIC });
    const topic = decodeText(reader.slice(length));
    if (this._topics.length < layout.MAX_TOKEN) this._topics.push(topic);
    return topic;
  }

  /** @param {Uint8Array} payload */
  _advance(payload) {
    return advanced({ received: this._received, delivered: this._delivered }, payload);
  }
}

/**
 * Return the acknowledgement that an ADVANCE says after these counts.
 * @param {{received: number, delivered: number}} last @param {Uint8Array} payload
 */
function advanced(last, payload) {
  const count = readAdvance(payload);
  const received = last.received + count;
  if (!Number.isSafeInteger(received)) throw malformed("an acknowledgement counts beyond 53 bits");
  return ack(received, last.delivered + count);
}

/**
 * Return the key that is `step` ahead of `last` on the same node: milliseconds, the counter in the
 * low bits.
 * @param {bigint} last @param {bigint} step
 */
function forward(last, step) {
  const ms = (last >> layout.TIME_SHIFT) + (step >> layout.FORWARD_BITS);
  return (ms << layout.TIME_SHIFT) | (last & layout.NODE_MASK) | (step & (layout.FORWARD_LIMIT - 1n));
}
