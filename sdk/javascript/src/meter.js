/** Checks that the gateway keeps within the window that it was given on one channel. */

import { creditExceeded } from "./errors.js";

export class Meter {
  /** @param {import("./wire/frames.js").Credit} window @param {number} received */
  constructor(window, received) {
    this._window = window;
    this._received = received;
    this._limit = 0;
    this._byteLimit = 0;
    this._bytes = 0;
    this._freed = 0;
    /** @type {Map<number, number>} */
    this._sizes = new Map();
    this._raise();
  }

  /**
   * Count a message that arrived; throw if it is beyond the window.
   * @param {number} seq @param {number} size
   */
  take(seq, size) {
    if (seq >= this._limit) throw creditExceeded("a message is beyond the window", { number: seq });
    if (seq < this._received || this._sizes.has(seq)) return;
    const total = this._bytes + size;
    if (total > this._byteLimit && this._bytes > this._freed) {
      throw creditExceeded("unacknowledged bytes are beyond the window", { bytes: total - this._freed });
    }
    this._bytes = total;
    this._sizes.set(seq, size);
  }

  /**
   * Note the received count that the gateway was told.
   * @param {number} received
   */
  acknowledge(received) {
    for (; this._received < received; this._received += 1) {
      this._freed += this._sizes.get(this._received) ?? 0;
      this._sizes.delete(this._received);
    }
    this._raise();
  }

  /**
   * Grant a window; what an earlier one allowed stays allowed.
   * @param {import("./wire/frames.js").Credit} window
   */
  grant(window) {
    this._window = window;
    this._raise();
  }

  _raise() {
    this._limit = Math.max(this._limit, this._received + this._window.messages);
    this._byteLimit = Math.max(this._byteLimit, this._freed + this._window.bytes);
  }
}
