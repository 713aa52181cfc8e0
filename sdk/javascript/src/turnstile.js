/**
 * In which order, and how many at a time, messages are handed to the application. A message is
 * offered with a commit before it is handed over, so that after a crash exactly those that may have
 * been seen are called redelivered.
 */

import { NO_POSITION } from "./message.js";

/** @typedef {import("./message.js").Message} Message */

export class Turnstile {
  /**
   * @param {number} prefetch
   * @param {number} offered messages at positions below may have been seen
   * @param {(message: Message) => void} late takes those whose deadline has passed
   */
  constructor(prefetch, offered, late) {
    this._prefetch = prefetch;
    this._late = late;
    /** @type {Message[]} Not offered yet. */
    this._waiting = [];
    /** @type {Message[]} To be handed over when that they were offered is durable. */
    this._offered = [];
    /** @type {Message[]} Best effort, which waits for nothing. */
    this._casual = [];
    this._outstanding = 0;
    this.offered = offered;
  }

  get casual() {
    return this._casual.length;
  }

  /**
   * Its turn comes after all others.
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
   * The application is done with it, or never gets it.
   * @param {Message} message
   */
  finished(message) {
    if (message.offered) this._outstanding -= 1;
  }

  /** Offer what the application may have beside what it has; durable with the next change. */
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

  /** What to hand over now, given that offers below position `durable` are durable.
   * @param {number} now @param {number} durable */
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
