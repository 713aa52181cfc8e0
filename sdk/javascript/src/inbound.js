/**
 * The numbers that came in: each is passed on once and in order, and acknowledged. Numbers start at
 * 0 in every epoch; what arrives beyond a gap waits until the gap is filled, skipped or closed.
 */

import { outOfOrder } from "./errors.js";
import { RangeSet } from "./ranges.js";
import { MAX_RANGES, ack } from "./wire/frames.js";

/**
 * How far ahead a number may be: above any credit that we grant, so that only a fault exceeds it.
 */
const FARTHEST = 4096;

/** @template T */
export class Inbound {
  /** @param {number} [received] @param {number} [delivered] */
  constructor(received = 0, delivered = 0) {
    this.received = received;
    this.delivered = delivered;
    this.duplicates = 0;
    /** @type {Map<number, T>} */
    this._waiting = new Map();
    this._ahead = new RangeSet();
    this._done = new RangeSet();
  }

  /**
   * Take an item in; return what can be passed on now, in order. A duplicate returns nothing.
   * @param {number} seq @param {T} item @returns {T[]}
   */
  receive(seq, item) {
    this._check(seq + 1);
    if (seq < this.received || !this._ahead.add(seq, seq + 1).length) {
      this.duplicates += 1;
      return [];
    }
    this._waiting.set(seq, item);
    return this._advance();
  }

  /**
   * Close numbers whose message expired or was cancelled; return the items that waited only for
   * them.
   * @param {number} first @param {number} count @returns {T[]}
   */
  skip(first, count) {
    const stop = first + count;
    this._check(stop);
    for (const seq of [...this._waiting.keys()]) {
      if (first <= seq && seq < stop) {
        this._waiting.delete(seq);
        this._finish(seq, seq + 1);
      }
    }
    return this._close(first, stop);
  }

  /**
   * Stop waiting for numbers below `count`, when a session resumes.
   * @param {number} count @returns {T[]}
   */
  closeBelow(count) {
    return this._close(this.received, count);
  }

  /**
   * Note that the application is done with these numbers.
   * @param {number} seq @param {number} [count]
   */
  deliver(seq, count = 1) {
    if (seq + count > Math.max(this.received, this._ahead.stop)) {
      throw new RangeError("a number is delivered before it was received");
    }
    this._finish(seq, seq + count);
  }

  /** Return the acknowledgement for the gateway. */
  acknowledgement() {
    return ack(this.received, this.delivered, this._ahead.lowestAndLast(MAX_RANGES));
  }

  /** @param {number} stop */
  _check(stop) {
    if (stop > this.received + FARTHEST) {
      throw outOfOrder("a number is too far ahead", { number: stop - 1, received: this.received });
    }
  }

  /** @param {number} first @param {number} stop */
  _close(first, stop) {
    const start = Math.max(first, this.received);
    if (start >= stop) return [];
    for (const [low, high] of this._ahead.add(start, stop)) this._finish(low, high);
    return this._advance();
  }

  /**
   * Move the received count over everything that has arrived; return the items in order.
   * @returns {T[]}
   */
  _advance() {
    this.received = this._ahead.takeFrom(this.received);
    const due = [...this._waiting.keys()].filter((seq) => seq < this.received).sort((a, b) => a - b);
    return due.map((seq) => {
      const item = /** @type {T} */ (this._waiting.get(seq));
      this._waiting.delete(seq);
      return item;
    });
  }

  /** @param {number} start @param {number} stop */
  _finish(start, stop) {
    start = Math.max(start, this.delivered);
    if (start >= stop) return;
    this._done.add(start, stop);
    this.delivered = this._done.takeFrom(this.delivered);
  }
}
