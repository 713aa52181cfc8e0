/** Keeps the device in contact: dials, notices the end of a channel, waits, and dials again. */

import { Channel } from "./channel.js";
import { HopError } from "./errors.js";
import { Ways } from "./ways.js";
import { CloseCode } from "./wire/frames.js";

/**
 * @typedef {import("./wire/frames.js").Close} Close
 * @typedef {import("./wire/frames.js").Frame} Frame
 * @typedef {import("./ways.js").Way} Way
 * @typedef {import("./channel.js").HeldSocket} HeldSocket
 * @typedef {{way: Way, held: HeldSocket}} Found
 * @typedef {{link?: string, network?: string, heartbeat?: number}} Place
 */

/** Milliseconds that a connection may take if there are other ways, and if there are none. */
const ATTEMPT = 8_000;
const LONGEST_ATTEMPT = 30_000;

/** Milliseconds that a HELLO may remain unanswered before another way is tried; twice as long each time. */
const HELLO_PATIENCE = 1_000;

/** Milliseconds between two checks whether a full socket has room again. */
const LOOK_AGAIN = 50;

export class Contact {
  /**
   * @param {object} parts
   * @param {import("./turns.js").Turns} parts.turns
   * @param {import("./channel.js").SocketClass} parts.WebSocket
   * @param {Way[]} parts.ways
   * @param {Place} parts.place
   * @param {boolean} [parts.checksums]
   * @param {{first?: number, longest?: number, random?: () => number}} [parts.backoff]
   * @param {() => number} parts.now
   * @param {() => void} parts.changed called when contact is made or lost
   */
  constructor({ turns, WebSocket, ways, place, checksums = true, backoff, now, changed }) {
    this._turns = turns;
    this._WebSocket = WebSocket;
    this.place = place;
    this._checksums = checksums;
    this._now = now;
    this._ways = new Ways(ways, backoff, now());
    /** @type {Found | null} A connection that takes the place of a silent channel. */
    this._next = null;
    /** The number of HELLOs that were given up since the gateway last answered one. */
    this._vain = 0;
    /** @type {(() => void) | null} Ends the race for a connection. */
    this._giveUp = null;
    this._changed = changed;
    /** Why there is no contact, in words. */
    this.problem = "not connected yet";
    /** The number of channels that ended because what the gateway sent could not be understood. */
    this.damaged = 0;
    this.there = false;
    this._redial = false;
    this._stopped = false;
    /** @type {Channel | null} */
    this._channel = null;
    /** @type {(() => void) | null} Ends the pause between two attempts. */
    this._hurry = null;
    /** @type {Promise<void>} */
    this._running = Promise.resolve();
  }

  get roundTrip() {
    return this._channel?.roundTrip ?? null;
  }

  get ways() {
    return this._ways.status;
  }

  get heartbeat() {
    return this._channel?.heartbeat ?? null;
  }

  get room() {
    const room = this._channel?.room ?? true;
    if (!room) setTimeout(() => this._turns.nudge(), LOOK_AGAIN);
    return room;
  }

  /** Keep in contact until an error is final; then reject with that error. */
  run() {
    const running = this._run();
    this._running = running.catch(() => {});
    return running;
  }

  async _run() {
    while (!this._stopped) {
      const found = this._next ?? (await this._connect());
      this._next = null;
      if (this._stopped || !found) {
        found?.held.socket.close(1000);
        return;
      }
      await this._oneChannel(found);
      if (this._ways.final && !this._stopped) throw this._ways.final;
    }
  }

  /**
   * Race connections over the ways that can be tried, until one is ready; resolve with null when the
   * device is closed, or the race is of no use any more.
   * @param {Way | null} [but] a way that is not tried
   * @returns {Promise<Found | null>}
   */
  _connect(but = null) {
    return new Promise((resolve, reject) => {
      /** @type {Map<Way, {held: HeldSocket, timer: ReturnType<typeof setTimeout>}>} */
      const attempts = new Map();
      /** @type {ReturnType<typeof setTimeout> | undefined} */
      let timer;
      let over = false;
      const finish = (/** @type {Found | null} */ found) => {
        if (over) return;
        over = true;
        clearTimeout(timer);
        this._hurry = this._giveUp = null;
        for (const [way, attempt] of attempts) {
          clearTimeout(attempt.timer);
          if (way === found?.way) continue;
          attempt.held.socket.onopen = attempt.held.socket.onclose = null;
          attempt.held.socket.close(1000);
          this._ways.left(way);
        }
        resolve(found);
      };
      const failed = (/** @type {Way} */ way, /** @type {string} */ reason) => {
        clearTimeout(attempts.get(way)?.timer);
        if (over || !attempts.delete(way)) return;
        if (!this.there) this.problem = reason;
        this._ways.ended(way, reason, this._now());
        start();
      };
      const open = (/** @type {Way} */ way) => {
        this._ways.connecting(way, this._now());
        const socket = new this._WebSocket(way.url, "hop");
        /** @type {HeldSocket} */
        const held = { socket, received: [], ended: null };
        const late = () => {
          socket.onopen = socket.onclose = null;
          socket.close(1000);
          failed(way, "the gateway did not answer in time");
        };
        attempts.set(way, { held, timer: setTimeout(late, this._ways.alone ? LONGEST_ATTEMPT : ATTEMPT) });
        socket.binaryType = "arraybuffer";
        socket.onerror = () => {};
        socket.onmessage = ({ data }) => held.received.push(data);
        socket.onclose = ({ reason }) => {
          const problem = reason || "the gateway cannot be reached";
          held.ended = problem;
          failed(way, problem);
        };
        socket.onopen = () => {
          this._ways.connected(way, this._now());
          finish({ way, held });
        };
      };
      const start = () => {
        clearTimeout(timer);
        if (over) return;
        if (this._stopped) return finish(null);
        const now = this._now();
        const way = this._ways.due(now).find((each) => each !== but);
        try {
          if (way) open(way);
        } catch (error) {
          over = true;
          reject(error); // The address is not that of a WebSocket.
          return;
        }
        const due = way ? now + this._ways.stagger(way) : this._ways.nextDue;
        if (due !== null) timer = setTimeout(start, Math.max(0, due - now));
        else if (!attempts.size) finish(null);
      };
      this._giveUp = () => finish(null);
      this._hurry = () => {
        this._ways.hurry(this._now());
        start();
      };
      start();
    });
  }

  /**
   * Look for another way, because the gateway does not answer over the present one.
   * @param {Found} present @param {Channel} channel
   */
  _silent(present, channel) {
    this._ways.suspect(present.way, true);
    this._ways.hurry(this._now());
    if (this._ways.alone || this._giveUp) return;
    this._connect(present.way).then(
      (found) => {
        if (!found) return;
        if (this._channel !== channel || !channel.silent) {
          found.held.socket.close(1000);
          this._ways.left(found.way);
          return;
        }
        this._next = found;
        if (!channel.welcomed) this._vain += 1;
        channel.drop("the gateway does not answer");
      },
      (error) => channel.drop(String(error)),
    );
  }

  /**
   * Run one channel from its first packet to its last.
   * @param {Found} found @returns {Promise<void>}
   */
  async _oneChannel(found) {
    const { way, held } = found;
    // The next HELLO carries what the last channel had not sent, so all of it must be durable.
    await this._turns.ask((session) => session.lost());
    const { heartbeat } = this.place;
    const { link = this.place.link, network = this.place.network, token } = way;
    const place = { link, network, heartbeat };
    const settled = await this._turns.askSettled((session) => session.hello(place));
    const hello = token === undefined ? settled : { ...settled, token };
    if (this._stopped) {
      held.socket.close(1000);
      return;
    }
    return new Promise((resolve) => {
      let welcomed = false;
      // A slow gateway is not asked over one way after the other for ever.
      const patience = Math.min(HELLO_PATIENCE * 2 ** this._vain, LONGEST_ATTEMPT);
      /** @type {import("./channel.js").Owner} */
      const owner = {
        welcomed: (welcome) => {
          this._turns
            .ask((session, now) => session.welcomed(hello, welcome, now))
            .then((useful) => {
              if (this._channel !== channel) return;
              if (!useful) {
                this._redial = true;
                channel.close(CloseCode.BYE, "these numbers are not ours");
                return;
              }
              this._ways.welcomed(way, this._now());
              this._vain = 0;
              welcomed = true;
              this.there = true;
              this._changed();
            })
            .catch((error) => this._fault(channel, error));
        },
        received: (frames) => {
          this._turns
            .ask((session, now) => session.received(frames, now))
            .catch((error) => this._fault(channel, error));
        },
        ended: (reason, last) => {
          this.problem = channel.damaged ? `what the gateway said could not be understood: ${reason}` : reason;
          if (channel.damaged) this.damaged += 1;
          this._channel = null;
          if (!this._next) this._giveUp?.();
          const was = this.there;
          this.there = false;
          if (was) this._changed();
          if (this._redial) {
            this._redial = false;
            this._ways.left(way);
          } else this._ways.ended(way, this.problem, this._now(), { close: last, welcomed: welcomed || channel.welcomed });
          resolve();
        },
        silent: () => this._silent(found, channel),
        answers: () => {
          this._ways.suspect(way, false);
          this._giveUp?.();
        },
      };
      /** @type {Channel} */
      let channel;
      channel = new Channel(this._WebSocket, way.url, hello, owner, this._now, this._checksums, { ...held, patience });
      this._channel = channel;
    });
  }

  /** @param {Channel} channel @param {unknown} error */
  _fault(channel, error) {
    if (error instanceof HopError) channel.fail(error);
  }

  /** Dial at once, in place of an open connection, because the network has changed. */
  reconnect() {
    this._hurry?.();
    this._ways.hurry(this._now());
    if (this._channel) {
      this._redial = true;
      this._channel.close(CloseCode.BYE, "the device is on another network");
    }
  }

  /** End the wait for the next attempt. */
  hurry() {
    this._hurry?.();
  }

  /** @param {Frame[]} frames */
  send(frames) {
    if (frames.length) this._channel?.send(frames);
  }

  /** Close the channel with a goodbye. */
  async close() {
    this._stopped = true;
    this._giveUp?.();
    this._channel?.close(CloseCode.BYE, "the device closed");
    await this._running;
  }
}
