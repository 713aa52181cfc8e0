/**
 * The outgoing half of a session: messages that the gateway may not have yet. A message gets its
 * number when it is queued, leaves when it is durable, the gateway has credit for it and a channel
 * is open, and is kept until the gateway has acknowledged it.
 */

import { LasthopError, outOfOrder } from "./errors.js";
import { idOf } from "./message.js";
import { RangeSet } from "./ranges.js";
import { utf8 } from "./wire/bytes.js";
import { DEFAULT_MAX_FRAME, DEFAULT_WINDOW } from "./wire/frames.js";

/**
 * @typedef {import("./wire/frames.js").Frame} Frame
 * @typedef {import("./wire/frames.js").MessageFrame} MessageFrame
 * @typedef {import("./wire/frames.js").Ack} Ack
 * @typedef {import("./wire/frames.js").Credit} Credit
 *
 * @typedef {object} Outgoing One message that the gateway may not have.
 * @property {MessageFrame} frame The frame as it is sent, without its number.
 * @property {string} id
 * @property {number} size An upper bound of the frame's bytes.
 * @property {number} number
 * @property {boolean} stored
 * @property {boolean} sent Whether the message was sent over the open channel.
 */

/** Bytes in a frame for what comes before the headers and the body, and for the smaller headers. */
const OVERHEAD = 164;

/**
 * Acknowledged messages that may wait to be removed with another change: after a crash the WELCOME
 * tells again that the gateway has them.
 */
const PRUNE = 256;

/** The most numbers in one skip: the gateway would refuse more. */
const FARTHEST = 4096;

/**
 * Return an upper bound of the bytes that a message takes on the wire.
 * @param {MessageFrame} frame
 */
export function frameSize({ body, topic, headers }) {
  const { contentType, title, source, to, queue, extra } = headers ?? {};
  const texts = [topic, contentType, title, source, to, queue, ...(extra ?? []).flat()];
  return texts.reduce((size, text) => size + (text ? 4 + utf8(text).length : 0), OVERHEAD + body.length);
}

export class Outbox {
  /** @param {import("./session.js").Terms} terms @param {import("./change.js").Held} held */
  constructor(terms, held) {
    this._terms = terms;
    this.assigned = held.state.assigned;
    /** How many numbers the gateway has. */
    this.received = held.state.accepted;
    /** @type {Map<number, Outgoing>} The messages by number, in order. */
    this._items = new Map();
    this._individual = new RangeSet();
    this._bytes = 0;
    for (const { id, number, frame } of [...held.outbox].sort((a, b) => a.number - b.number)) {
      if (number < this.received) continue;
      const item = { frame, id, size: frameSize(frame), number, stored: true, sent: false };
      this._items.set(number, item);
      this._bytes += item.size;
    }
    /** @type {Outgoing[]} Best-effort messages, which are neither numbered nor kept. */
    this._casual = [];
    /** @type {Outgoing[]} */
    this._unstored = [];
    /** @type {string[]} */
    this._taken = [];
    this._renumbered = false;
    /** @type {string[]} Ids of messages that were acknowledged since the owner last looked. */
    this.accepted = [];
    /** @type {string[]} Ids of messages that were sent since the owner last looked. */
    this.sent = [];
    /** @type {[string, import("./message.js").Refusal][]} */
    this.refusals = [];
    /** @type {Credit} */
    this._window = DEFAULT_WINDOW;
    this._maxFrame = DEFAULT_MAX_FRAME;
    this.more = false;
    /** The next number to send, from what the gateway is assumed to have. */
    this._cursor = this.received;
    this._peerReceived = this.received;
    this._inFlight = 0;
    this._skips = new RangeSet();
  }

  /** The number of messages that the gateway may not have. */
  get waiting() {
    return this._items.size + this._casual.length;
  }

  get dirty() {
    return this._unstored.length > 0 || this._renumbered || this._taken.length >= PRUNE;
  }

  /**
   * Throw if a message is too large, or too many are waiting already.
   * @param {MessageFrame} frame
   */
  check(frame) {
    const size = frameSize(frame);
    if (size > this._maxFrame) {
      throw new LasthopError("too_large", "the message is larger than a frame may be", { size, most: this._maxFrame });
    }
    const { outboxMessages, outboxBytes } = this._terms;
    if (this.waiting >= outboxMessages || this._bytes + size > outboxBytes) {
      throw new LasthopError("overloaded", "the outbox is full", { messages: this.waiting, bytes: this._bytes });
    }
  }

  /**
   * Queue a message that was checked; return its id.
   * @param {MessageFrame} frame @param {boolean} casual
   */
  queue(frame, casual) {
    const id = idOf(frame.key ?? 0n);
    /** @type {Outgoing} */
    const item = { frame, id, size: frameSize(frame), number: -1, stored: false, sent: false };
    this._bytes += item.size;
    if (casual) {
      this._casual.push(item);
      return;
    }
    item.number = this.assigned++;
    this._items.set(item.number, item);
    this._unstored.push(item);
  }

  // The channel.

  /**
   * Prepare to send over a new channel what the gateway, by its WELCOME, does not have.
   * @param {Ack} ack @param {Credit} [window] @param {number} [maxFrame]
   */
  resume(ack, window = DEFAULT_WINDOW, maxFrame = DEFAULT_MAX_FRAME) {
    this.lost();
    this._window = window;
    this._maxFrame = maxFrame;
    this._peerReceived = ack.received;
    this.acknowledge(ack);
    this._cursor = ack.received;
    // Numbers that the gateway lacks and we no longer have (it is an older copy of itself) are
    // skipped, so that it does not wait for them.
    const there = new RangeSet(ack.individual);
    for (const number of this._items.keys()) there.add(number, number + 1);
    this._skips = new RangeSet(there.without(ack.received, this.assigned));
  }

  /**
   * Number the messages from 0, without those that the gateway has.
   * @param {number} dropBelow
   */
  startOver(dropBelow) {
    const items = [...this._items.values()];
    this._items = new Map();
    this._individual = new RangeSet();
    this.assigned = 0;
    this.received = 0;
    for (const item of items) {
      if (item.number < dropBelow) this._accept(item);
      else {
        item.number = this.assigned++;
        this._items.set(item.number, item);
      }
    }
    this._renumbered = true;
    this.lost();
  }

  /** Note that no channel is open: messages that are not acknowledged must be sent again. */
  lost() {
    for (const item of this._items.values()) item.sent = false;
    this._cursor = this.received;
    this._peerReceived = this.received;
    this._inFlight = 0;
    this._skips = new RangeSet();
  }

  /**
   * Note what the gateway has; an outdated acknowledgement changes nothing.
   * @param {Ack} ack
   */
  acknowledge(ack) {
    const stop = Math.max(ack.received, ack.individual.at(-1)?.[1] ?? 0);
    if (stop > this.assigned) {
      throw outOfOrder("an acknowledgement is for a number that was never sent", { received: stop, assigned: this.assigned });
    }
    if (ack.delivered > ack.received) {
      throw outOfOrder("an acknowledgement has more delivered than received", { received: ack.received });
    }
    for (const [start, end] of [[this.received, ack.received], ...ack.individual]) {
      for (const [low, high] of start < end ? this._individual.add(start, end) : []) {
        this._takenFrom(low, high);
      }
    }
    this.received = this._individual.takeFrom(this.received);
    this._peerReceived = Math.max(this._peerReceived, ack.received);
  }

  /** @param {number} low @param {number} high */
  _takenFrom(low, high) {
    for (let number = low; number < high; number += 1) {
      const item = this._items.get(number);
      if (!item) continue;
      if (item.sent) this._inFlight -= item.frame.body.length;
      this._items.delete(number);
      this._accept(item);
    }
  }

  /**
   * Set the gateway's window.
   * @param {Credit} window
   */
  credit(window) {
    this._window = window;
  }

  /**
   * Return the frames to send now, of the numbers below `durable`: about `budget` bytes. `more`
   * tells whether that budget cut them short.
   * @param {number} durable @param {number} budget @returns {Frame[]}
   */
  frames(durable, budget) {
    /** @type {Frame[]} */
    const frames = [];
    for (const item of this._casual.splice(0)) {
      this._bytes -= item.size;
      frames.push(item.frame);
      this.sent.push(item.id);
    }
    this.more = false;
    let written = 0;
    while (this._cursor < durable) {
      if (written >= budget) {
        this.more = true;
        break;
      }
      const item = this._items.get(this._cursor);
      if (!item) {
        if (!this._pass(frames)) break;
      } else if (item.size > this._maxFrame) {
        this.refusals.push([item.id, { code: "too_large", detail: `the gateway accepts frames of at most ${this._maxFrame} bytes` }]);
        this._items.delete(item.number);
        this._forget(item);
        this._skips.add(item.number, item.number + 1);
      } else {
        if (!this._admits(item)) break;
        frames.push({ ...item.frame, seq: item.number });
        item.sent = true;
        written += item.size;
        this._inFlight += item.frame.body.length;
        this._cursor += 1;
        this.sent.push(item.id);
      }
    }
    return frames;
  }

  /**
   * Whether the gateway's window has room; a single message may exceed the bytes.
   * @param {Outgoing} item
   */
  _admits(item) {
    const size = item.frame.body.length;
    const fits = this._inFlight === 0 || this._inFlight + size <= this._window.bytes;
    return fits && item.number - this._peerReceived < this._window.messages;
  }

  /**
   * Skip a number without a message, if the gateway waits for it; return false if it cannot be
   * skipped yet.
   * @param {Frame[]} frames
   */
  _pass(frames) {
    const number = this._cursor;
    const range = this._skips.ranges().find(([start, stop]) => start <= number && number < stop);
    if (!range) {
      this._cursor += 1;
      return true;
    }
    if (number >= this._peerReceived + FARTHEST) return false;
    const count = Math.min(range[1] - number, FARTHEST);
    frames.push({ type: "skip", first: number, count });
    this._cursor += count;
    if (this._peerReceived === number) this._peerReceived += count;
    return true;
  }

  /** @param {Outgoing} item */
  _accept(item) {
    this.accepted.push(item.id);
    this._forget(item);
  }

  /** @param {Outgoing} item */
  _forget(item) {
    this._bytes -= item.size;
    if (item.stored) this._taken.push(item.id);
    else this._unstored = this._unstored.filter((other) => other !== item);
  }

  /**
   * Add to `change` what must survive.
   * @param {import("./change.js").Change} change
   */
  collect(change) {
    if (this._renumbered) {
      for (const { id, number, stored } of this._items.values()) {
        if (stored) change.renumbered.push([id, number]);
      }
      this._renumbered = false;
    }
    for (const item of this._unstored) {
      item.stored = true;
      change.queued.push({ id: item.id, number: item.number, frame: item.frame });
    }
    this._unstored = [];
    change.taken = this._taken;
    this._taken = [];
  }
}
