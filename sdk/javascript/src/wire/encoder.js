/**
 * Encodes frames to units (WebSocket messages), in the shortest form that the channel's context
 * allows. One encoder serves one direction of one channel; it leaves out what the peer's decoder
 * can work out.
 */

import { LasthopError } from "../errors.js";
import { Reader, Writer, utf8 } from "./bytes.js";
import { writeControl } from "./control.js";
import * as fields from "./fields.js";
import { DEFAULT_CONTENT_TYPE, DEFAULT_MAX_FRAME, MAX_TOPIC } from "./frames.js";
import { LaneContexts, checkedLane } from "./lanes.js";
import * as layout from "./layout.js";

/** @typedef {import("./frames.js").Frame} Frame */

const ONLY_UNORDERED = "only a lane without order has numbers finished beyond a gap";

export class Encoder {
  /** @param {string} [preferred] the first type of the peer's accept list, which is not sent */
  constructor(preferred = DEFAULT_CONTENT_TYPE) {
    this.preferred = preferred;
    this.maxFrame = DEFAULT_MAX_FRAME;
    this.bundled = true;
    this._key = 0n;
    /** @type {Map<string, number>} */
    this._topics = new Map();
    this._next = 0;
    this._received = 0;
    this._delivered = 0;
    /** @type {LaneContexts | null} */
    this._lanes = null;
  }

  /**
   * Start with the counts of the handshake: the peer's received count, and our own counts.
   * @param {number} next @param {number} received @param {number} delivered
   */
  begin(next, received, delivered) {
    this._next = next;
    this._received = received;
    this._delivered = delivered;
  }

  /**
   * Return the units to send for these frames: bundles of at most the size that the peer accepts.
   * @param {Frame[]} frames @returns {Uint8Array[]}
   */
  units(frames) {
    /** @type {Uint8Array[]} */
    const units = [];
    let out = new Writer().byte(layout.BUNDLE);
    let count = 0;
    const finish = () => {
      if (count === 0) return;
      const unit = out.take();
      units.push(count === 1 ? alone(unit) : unit);
      out = new Writer().byte(layout.BUNDLE);
      count = 0;
    };
    for (const frame of frames) {
      const content = this.encode(frame);
      const size = new Writer().varint(content.length).length + content.length;
      const most = this.bundled ? layout.MOST_BUNDLED : 1;
      if (count && (count === most || out.length + size > this.maxFrame)) finish();
      out.varint(content.length).put(content);
      count += 1;
    }
    finish();
    return units;
  }

  /**
   * Encode one frame without a length.
   * @param {Frame} frame
   */
  encode(frame) {
    let content;
    if (frame.type === "message") content = frame.lane ? this._inLane(frame) : this._message(frame);
    else if (frame.type === "ack") content = this._ackFrame(frame);
    else if (frame.type === "lane") content = this._laneFrame(frame);
    else content = writeControl(frame);
    if (content.length > this.maxFrame) {
      throw new LasthopError("too_large", "the frame is larger than the peer accepts", { size: content.length });
    }
    return content;
  }

  /** @param {import("./frames.js").MessageFrame} frame */
  _inLane(frame) {
    const lane = checkedLane(frame.lane ?? 0);
    if (frame.seq === null) throw new RangeError("a message without a number has no lane");
    this._lanes ??= new LaneContexts();
    const [next, key] = [this._next, this._key];
    ({ next: this._next, key: this._key } = this._lanes.nextMessage(lane, key));
    try {
      const content = this._message(frame);
      this._lanes.noteMessage(lane, { next: this._next, key: this._key });
      return content;
    } finally {
      [this._next, this._key] = [next, key];
    }
  }

  /** @param {import("./frames.js").LaneFrame} frame */
  _laneFrame({ lane, frame }) {
    const out = new Writer().byte(layout.LANE).varint(checkedLane(lane));
    if (frame.type !== "ack") return out.put(writeControl(frame)).take();
    if (frame.finished?.length && !(lane & 1)) throw new RangeError(ONLY_UNORDERED);
    this._lanes ??= new LaneContexts();
    const said = this._ack(frame, this._lanes.lastAcknowledged(lane));
    this._lanes.noteAck(lane, { received: frame.received, delivered: frame.delivered });
    // Nothing behind the lane is an ADVANCE by one.
    return said.length === 1 ? out.take() : out.put(said).take();
  }

  /** @param {import("./frames.js").MessageFrame} frame */
  _message(frame) {
    const { seq, key, topic, headers, body } = frame;
    let flags = layout.MESSAGE;
    const head = new Writer();
    if (frame.lane) {
      flags |= layout.IN_LANE;
      head.varint(frame.lane);
    }
    if (seq === null) flags |= layout.UNSEQUENCED;
    else if (seq !== this._next) {
      flags |= layout.NUMBERED;
      head.varint(seq);
    }
    if (key === null) flags |= layout.KEY_NONE;
    else if (key !== this._key + 1n) flags |= this._keyStep(key, head);
    if (topic !== null) {
      flags |= layout.TOPIC;
      this._topic(topic, head);
    }
    if (headers) {
      const block = fields.HEADERS.write(headers, headers.contentType === this.preferred ? "contentType" : "");
      if (block.length) {
        flags |= layout.HEADERS;
        head.varint(block.length).put(block);
      }
    }
    if (seq !== null) this._next = seq + 1;
    if (key !== null) this._key = key;
    return new Writer().byte(flags).put(head.take()).put(body).take();
  }

  /** @param {bigint} key @param {Writer} head @returns {number} the flags of its form */
  _keyStep(key, head) {
    const last = this._key;
    const ms = (key >> layout.TIME_SHIFT) - (last >> layout.TIME_SHIFT);
    const counter = key & layout.COUNTER_MASK;
    const sameNode = ((key ^ last) & layout.NODE_MASK) === 0n;
    if (sameNode && ms >= 0n && counter < layout.FORWARD_LIMIT) {
      head.bigVarint((ms << layout.FORWARD_BITS) | counter);
      return layout.KEY_FORWARD;
    }
    head.bigVarint(key);
    return layout.KEY_ABSOLUTE;
  }

  /** @param {string} topic @param {Writer} head */
  _topic(topic, head) {
    const token = this._topics.get(topic);
    if (token !== undefined) {
      head.varint(token);
      return;
    }
    if (utf8(topic).length > MAX_TOPIC) {
      throw new LasthopError("too_large", "a topic is longer than the hop protocol allows", { most: MAX_TOPIC });
    }
    head.byte(0).text(topic);
    if (this._topics.size < layout.MAX_TOKEN) this._topics.set(topic, this._topics.size + 1);
  }

  /** @param {import("./frames.js").Ack} ack */
  _ackFrame(ack) {
    if (ack.finished?.length) throw new RangeError(ONLY_UNORDERED);
    const content = this._ack(ack, { received: this._received, delivered: this._delivered });
    this._received = ack.received;
    this._delivered = ack.delivered;
    return content;
  }

  /**
   * Return an ACK, or the ADVANCE that says the same after these counts were said last.
   * @param {import("./frames.js").Ack} ack @param {{received: number, delivered: number}} last
   */
  _ack(ack, last) {
    const step = ack.received - last.received;
    const together = step === ack.delivered - last.delivered;
    const out = new Writer();
    if (together && step > 0 && !ack.individual.length && !ack.finished?.length) {
      out.byte(layout.ADVANCE);
      return step === 1 ? out.take() : out.varint(step).take();
    }
    out.byte(layout.ACK).varint(ack.received).varint(ack.delivered);
    out.put(fields.writeRanges(ack.received, ack.individual));
    // A zero, neither a gap nor a run, ends the pairs.
    if (ack.finished?.length) out.byte(0).put(fields.writeRanges(ack.delivered, ack.finished));
    return out.take();
  }
}

/**
 * Return a bundle of one frame without the bundle's mark and length.
 * @param {Uint8Array} unit
 */
function alone(unit) {
  const reader = new Reader(unit, 1);
  reader.varint();
  return reader.rest();
}
