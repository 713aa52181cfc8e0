/**
 * Connects a session with its inbox: one turn takes everything that happened, commits it, and does
 * what follows. What happens while a turn waits for the disk is collected for the next turn.
 */

import { LasthopError } from "./errors.js";

/**
 * @typedef {import("./session.js").Session} Session
 * @typedef {(session: Session, now: number) => any} Act A function that acts on the session in a turn.
 *
 * @typedef {object} Carrier
 * @property {(frames: import("./wire/frames.js").Frame[]) => void} send
 * @property {() => boolean} room
 * @property {(messages: import("./message.js").Message[]) => void} ready
 * @property {(event: import("./session.js").SessionEvent) => void} notify
 * @property {(error: unknown) => void} failed Called when the inbox failed: the device must end.
 *
 * @typedef {object} Pending
 * @property {Act} act
 * @property {boolean} settled Whether to wait until everything so far is durable.
 * @property {(value: any) => void} resolve
 * @property {(error: unknown) => void} reject
 */

export class Turns {
  /**
   * @param {Session} session
   * @param {import("./inbox/memory.js").Inbox} inbox
   * @param {Carrier} carrier
   * @param {() => number} now
   */
  constructor(session, inbox, carrier, now) {
    this._session = session;
    this._inbox = inbox;
    this._carrier = carrier;
    this._now = now;
    /** @type {Pending[]} */
    this._acts = [];
    this._running = false;
    this._again = false;
    /** @type {unknown} The reason why no more turns are taken. */
    this._over = null;
    /** @type {(() => void)[]} */
    this._idle = [];
  }

  /**
   * Run `act` in the next turn; resolve with its result when that is durable.
   * @param {Act} act @returns {Promise<any>}
   */
  ask(act) {
    return this._ask(act, false);
  }

  /**
   * Run `act` in a turn in which everything so far is durable; resolve with its result when that is
   * durable.
   * @param {Act} act @returns {Promise<any>}
   */
  askSettled(act) {
    return this._ask(act, true);
  }

  /** @param {Act} act @param {boolean} settled @returns {Promise<any>} */
  _ask(act, settled) {
    if (this._over) return Promise.reject(this._over);
    return new Promise((resolve, reject) => {
      this._acts.push({ act, settled, resolve, reject });
      this.nudge();
    });
  }

  /**
   * Run `act` in the next turn without waiting; a failure is handled elsewhere.
   * @param {Act} act
   */
  post(act) {
    this.ask(act).catch(() => {});
  }

  /** Start a turn, now or after the one that is running. */
  nudge() {
    this._again = true;
    if (this._running || this._over) return;
    this._running = true;
    void this._run();
  }

  /**
   * Wait until nothing is left to do.
   * @returns {Promise<void>}
   */
  idle() {
    return this._running ? new Promise((resolve) => this._idle.push(resolve)) : Promise.resolve();
  }

  /**
   * Take no more turns; reject those that wait with the reason.
   * @param {unknown} why
   */
  end(why) {
    this._over ??= why;
    for (const { reject } of this._acts.splice(0)) reject(this._over);
  }

  /**
   * Make the changes of the session durable.
   * @param {boolean} [flush]
   */
  async commit(flush = false) {
    const change = this._session.change(flush);
    if (!change) return;
    await this._inbox.apply(change);
    this._session.committed(change.n);
  }

  async _run() {
    // Whatever else happens in this tick belongs to the same turn.
    await null;
    try {
      while (this._again && !this._over) {
        this._again = false;
        await this._turn(this._acts.splice(0));
      }
    } catch (error) {
      // The contents of the inbox are unknown after a failure.
      this.end(error);
      this._carrier.failed(error);
    }
    this._running = false;
    for (const resolve of this._idle.splice(0)) resolve();
  }

  /** @param {Pending[]} pending */
  async _turn(pending) {
    const session = this._session;
    /** @type {(() => void)[]} */
    const answers = [];
    const perform = (/** @type {boolean} */ late) => {
      for (const { act, settled, resolve, reject } of pending) {
        if (settled !== late) continue;
        try {
          const result = act(session, this._now());
          answers.push(() => resolve(result));
        } catch (error) {
          answers.push(() => reject(error));
        }
      }
    };
    perform(false);
    try {
      await this.commit();
      const ready = session.ready(this._now());
      // Messages that were too late when their turn came have changed the counts.
      await this.commit();
      perform(true);
      for (const answer of answers) answer();
      this._carrier.send(session.frames(this._carrier.room()));
      for (const event of session.events()) this._carrier.notify(event);
      if (ready.length) this._carrier.ready(ready);
    } catch (error) {
      const why = error instanceof LasthopError ? error : new LasthopError("store_broken", String(error));
      for (const { reject } of pending) reject(why);
      throw why;
    }
    if (session.more) this._again = true;
  }
}
