/**
 * Estimates the round-trip time without a message of its own: each side now and then sends its own
 * time and its estimate of the peer's time (docs/hop-protocol.md, "Round trips without a round
 * trip"). All times are in milliseconds.
 */

const LONGEST = 60_000;
const TIME_EVERY = 10_000;
const TIME_WITH = 2048;

export class RoundTrip {
  /** @param {number} now */
  constructor(now) {
    /** @type {number | null} */
    this._peerTime = null;
    this._takenAt = now;
    this._toldAt = now;
    this._asked = false;
    this._owed = false;
    /** @type {number | null} The smoothed round-trip time; null until it is known. */
    this.smoothed = null;
  }

  /** @param {number} timestamp @param {number} now */
  onOwnTime(timestamp, now) {
    this._peerTime = timestamp;
    this._takenAt = now;
  }

  /** @param {number} timestamp @param {number} now */
  onPeerTime(timestamp, now) {
    this.sample(now - timestamp);
  }

  /** @param {number} elapsed */
  sample(elapsed) {
    // A clock that was set in between must not spoil the average.
    if (elapsed < 0 || elapsed > LONGEST) return;
    this.smoothed = this.smoothed === null ? elapsed : this.smoothed + (elapsed - this.smoothed) / 8;
  }

  /** Answer the WELCOME's time with the first unit, because the gateway has no measurement yet. */
  owe() {
    this._owed = true;
    this._toldAt -= TIME_EVERY;
  }

  /**
   * Handle a TIME, which is answered unless it is the answer to ours.
   * @param {import("./wire/frames.js").Time} time @param {number} now
   */
  onTime(time, now) {
    this.onOwnTime(time.own, now);
    this.onPeerTime(time.peer, now);
    this._owed = !this._asked;
    this._asked = false;
  }

  /**
   * Return the TIME to add to a unit of `bytes` bytes, or null if none is due.
   * @param {number} now @param {number} bytes @returns {import("./wire/frames.js").Time | null}
   */
  timeToSend(now, bytes) {
    if (now - this._toldAt < TIME_EVERY || !(this._owed || bytes >= TIME_WITH)) return null;
    if (this._peerTime === null) return null;
    this._toldAt = now;
    this._asked = !this._owed;
    this._owed = false;
    return { type: "time", own: now, peer: Math.max(0, this._peerTime + (now - this._takenAt)) };
  }
}
