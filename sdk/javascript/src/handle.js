/** Handles, which report what happens to a message that this device sent. */

import { LasthopError, MessageRefused } from "./errors.js";

/** How far a message has come; the status only moves forward. */
export const Status = Object.freeze({
  /** The message is durable on this device. */
  QUEUED: "queued",
  /** The message has left the device at least once. */
  SENT: "sent",
  /** The gateway has the message: it will not be lost. */
  ACCEPTED: "accepted",
  /** The gateway will not act on the message, and gave a reason. */
  REFUSED: "refused",
});

const ORDER = [Status.QUEUED, Status.SENT, Status.ACCEPTED, Status.REFUSED];

/** @typedef {"queued" | "sent" | "accepted" | "refused"} StatusName */

/** Reports the progress of one sent message. */
export class MessageHandle {
  /** @param {string} id */
  constructor(id) {
    /** The id of the message on this device; the gateway gives the message an id of its own. */
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
   * Wait until the message has reached a status. Rejects when the gateway refuses the message,
   * after `timeout` seconds, or when the device ends.
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
        if (late) throw new LasthopError("timeout", `the message did not become ${status} in time`, { id: this.id });
        await /** @type {Promise<void>} */ (new Promise((resolve) => this._waiting.push(resolve)));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Wait until the gateway has accepted the message.
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
   * Note that the device has ended: the message makes no further progress until it is opened again.
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
