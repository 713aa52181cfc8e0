/**
 * Where a session and its inbox meet: one turn takes everything that happened, commits, and says what
 * follows. While a turn waits for the disk what happens is collected for the next.
 */

import { LasthopError } from "./errors.js";

/**
 * @typedef {import("./session.js").Session} Session
 * @typedef {(session: Session, now: number) => any} Act Something that happened to the session.
 *
 * @typedef {object} Carrier
 * @property {(frames: import("./wire/frames.js").Frame[]) => void} send
 * @property {() => boolean} room
 * @property {(messages: import("./message.js").Message[]) => void} ready
 * @property {(happening: import("./session.js").Happening) => void} tell
 * @property {(error: unknown) => void} failed The inbox failed: the device cannot go on.
 *
 * @typedef {object} Pending
 * @property {Act} act
 * @property {boolean} settled To be done when everything so far is durable.
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
    /** @type {unknown} Why no more turns are taken. */
    this._over = null;
    /** @type {(() => void)[]} */
    this._idle = [];
  }

  /** Let this happen in the next turn; resolves with what it returned when that is durable.
   * @param {Act} act @returns {Promise<any>} */
  ask(act) {
    return this._ask(act, false);
  }

  /**
   * The same for what must not see anything that is not durable.
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

  /** The same for those who do not wait; if it fails, the failure is dealt with elsewhere.
   * @param {Act} act */
  post(act) {
    this.ask(act).catch(() => {});
  }

  /** Take a turn, now or after the one that is under way. */
  nudge() {
    this._again = true;
    if (this._running || this._over) return;
    this._running = true;
    void this._run();
  }

  /**
   * Until nothing is left to do.
   * @returns {Promise<void>}
   */
  idle() {
    return this._running ? new Promise((resolve) => this._idle.push(resolve)) : Promise.resolve();
  }

  /**
   * Take no more turns; whoever waits for one is told why.
   * @param {unknown} why
   */
  end(why) {
    this._over ??= why;
    for (const { reject } of this._acts.splice(0)) reject(this._over);
  }

  /**
   * Make durable whatever waits for it.
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
      // Nobody knows what the inbox holds now.
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
      // What was too late when its turn came has changed the counts.
      await this.commit();
      perform(true);
      for (const answer of answers) answer();
      this._carrier.send(session.frames(this._carrier.room()));
      for (const happening of session.happenings()) this._carrier.tell(happening);
      if (ready.length) this._carrier.ready(ready);
    } catch (error) {
      const why = error instanceof LasthopError ? error : new LasthopError("store_broken", String(error));
      for (const { reject } of pending) reject(why);
      throw why;
    }
    if (session.more) this._again = true;
  }
}
