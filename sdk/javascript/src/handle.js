/** What became of a message that this device sent. */

import { LasthopError, MessageRefused } from "./errors.js";

/** How far a message has come; it only moves on. */
export const Status = Object.freeze({
  /** Durable on this device. */
  QUEUED: "queued",
  /** It has left at least once. */
  SENT: "sent",
  /** The gateway has it: it will not be lost. */
  ACCEPTED: "accepted",
  /** The gateway will not act on it, and said why. */
  REFUSED: "refused",
});

const ORDER = [Status.QUEUED, Status.SENT, Status.ACCEPTED, Status.REFUSED];

/** @typedef {"queued" | "sent" | "accepted" | "refused"} StatusName */

/** One message on its way. */
export class MessageHandle {
  /** @param {string} id */
  constructor(id) {
    /** By which this device knows it; the gateway gives it an id of its own. */
    this.id = id;
    /** @type {StatusName} */
    this.status = Status.QUEUED;
    /** @type {import("./message.js").Refusal | null} */
    this.refusal = null;
    /** @type {unknown} */
    this._failure = null;
    /** @type {(() => void)[]} */
    this._waiting = [];
  }

  /**
   * Until it has come this far. Rejects when the gateway refuses it, after `timeout` seconds, or
   * when the device ends.
   * @param {StatusName} status @param {{timeout?: number}} options
   */
  async reached(status, { timeout } = {}) {
    let late = false;
    const timer =
      timeout === undefined
        ? undefined
        : setTimeout(() => {
            late = true;
            this._stir();
          }, timeout * 1000);
    try {
      for (;;) {
        if (this.refusal && status !== Status.REFUSED) throw new MessageRefused(this.refusal, this.id);
        if (ORDER.indexOf(this.status) >= ORDER.indexOf(status)) return;
        if (this._failure) throw this._failure;
        if (late) throw new LasthopError("timeout", `the message is not ${status} in time`, { id: this.id });
        await /** @type {Promise<void>} */ (new Promise((resolve) => this._waiting.push(resolve)));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Until the gateway has it.
   * @param {{timeout?: number}} options
   */
  accepted(options = {}) {
    return this.reached(Status.ACCEPTED, options);
  }

  /** @param {StatusName} status @param {import("./message.js").Refusal} [refusal] */
  move(status, refusal) {
    this.refusal = refusal ?? this.refusal;
    if (ORDER.indexOf(status) > ORDER.indexOf(this.status)) this.status = status;
    this._stir();
  }

  /**
   * The device has ended: it will come no further in this life.
   * @param {unknown} error
   */
  fail(error) {
    this._failure = error;
    this._stir();
  }

  _stir() {
    for (const resolve of this._waiting.splice(0)) resolve();
  }
}
