/**
 * Checks whether the gateway is still there: the device sends a ping after an interval without
 * traffic in either direction.
 */

const DEFAULT_INTERVAL = 240_000;
const PATIENCE = 60_000;

export class Heartbeat {
  /** @param {number} now @param {number} [seconds] the interval that the WELCOME sets */
  constructor(now, seconds) {
    this.interval = seconds ? seconds * 1000 : DEFAULT_INTERVAL;
    this._received = now;
    this._sent = now;
    /** @type {number | null} */
    this._pinged = null;
  }

  /**
   * Note that something arrived; return how long a ping has waited for an answer, null if none was
   * sent.
   * @param {number} now
   */
  onReceived(now) {
    const pinged = this._pinged;
    this._pinged = null;
    this._received = now;
    return pinged === null ? null : now - pinged;
  }

  /** @param {number} now */
  onSent(now) {
    this._sent = now;
  }

  /** Return when to call `check` again. */
  nextDue() {
    if (this._pinged !== null) return this._pinged + Math.min(this.interval * 1.5, PATIENCE);
    return Math.min(this._received, this._sent) + this.interval;
  }

  /** @param {number} now @returns {"quiet" | "ping" | "dead"} */
  check(now) {
    if (now < this.nextDue()) return "quiet";
    if (this._pinged !== null) return "dead";
    this._pinged = now;
    this._sent = now;
    return "ping";
  }
}
