/**
 * Decides in which order, and how many at a time, messages are passed to the application. A message
 * is offered with a commit before it is passed on, so that after a crash exactly the messages that
 * may have been seen are marked as redelivered.
 */

import { NO_POSITION } from "./message.js";

/** @typedef {import("./message.js").Message} Message */

export class HandoverQueue {
  /**
   * @param {number} prefetch
   * @param {number} offered messages at positions below this may have been seen
   * @param {(message: Message) => void} late called with messages whose deadline has passed
   */
  constructor(prefetch, offered, late) {
    this._prefetch = prefetch;
    this._late = late;
    /** @type {Message[]} Messages that are not offered yet. */
    this._waiting = [];
    /** @type {Message[]} Messages to pass on when their offer is durable. */
    this._offered = [];
    /** @type {Message[]} Best-effort messages, which wait for nothing. */
    this._casual = [];
    this._outstanding = 0;
    this.offered = offered;
  }

  get casual() {
    return this._casual.length;
  }

  /**
   * Add a message after all others.
   * @param {Message} message
   */
  add(message) {
    if (message.position === NO_POSITION) this._casual.push(message);
    else if (message.offered) {
      this._outstanding += 1;
      this._offered.push(message);
    } else this._waiting.push(message);
  }

  /**
   * Remove a message that the application is done with, or never gets.
   * @param {Message} message
   */
  finished(message) {
    if (message.offered) this._outstanding -= 1;
  }

  /** Offer as many messages as the application may have at a time; durable with the next change. */
  offer() {
    let count = 0;
    while (count < this._waiting.length && this._outstanding < this._prefetch) {
      const message = this._waiting[count++];
      if (message.finished) continue;
      message.offered = true;
      this._outstanding += 1;
      this._offered.push(message);
      this.offered = Math.max(this.offered, message.position + 1);
    }
    this._waiting.splice(0, count);
  }

  /**
   * Return the messages to pass on now, given that offers below position `durable` are durable.
   * @param {number} now @param {number} durable
   */
  ready(now, durable) {
    const casual = this._casual.splice(0);
    const count = this._offered.filter((message) => message.position < durable).length;
    const due = this._offered.splice(0, count);
    return [...casual, ...due].filter((message) => {
      if (message.finished) return false;
      if (message.deadline === null || now < message.deadline) return true;
      this._late(message);
      return false;
    });
  }
}
