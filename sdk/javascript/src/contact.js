/** Keeps the device in contact: dials, notices the end of a channel, waits, and dials again. */

import { Channel } from "./channel.js";
import { HopError } from "./errors.js";
import { verdict } from "./retry.js";
import { CloseCode } from "./wire/frames.js";

/**
 * @typedef {import("./wire/frames.js").Close} Close
 * @typedef {import("./wire/frames.js").Frame} Frame
 * @typedef {{link?: string, network?: string, heartbeat?: number}} Place
 */

/**
 * Milliseconds after which a channel counts as stable, and the backoff starts over: a gateway that
 * accepts us and closes at once must not be dialled ever more often.
 */
const LASTING = 2_000;

/** Milliseconds between two checks whether a full socket has room again. */
const LOOK_AGAIN = 50;

export class Contact {
  /**
   * @param {object} parts
   * @param {import("./turns.js").Turns} parts.turns
   * @param {import("./channel.js").SocketClass} parts.WebSocket
   * @param {string} parts.url
   * @param {Place} parts.place
   * @param {boolean} [parts.checksums]
   * @param {import("./retry.js").Backoff} parts.backoff
   * @param {() => number} parts.now
   * @param {() => void} parts.changed called when contact is made or lost
   */
  constructor({ turns, WebSocket, url, place, checksums = true, backoff, now, changed }) {
    this._turns = turns;
    this._WebSocket = WebSocket;
    this._url = url;
    this.place = place;
    this._checksums = checksums;
    this._backoff = backoff;
    this._now = now;
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
      const { last, error } = await this._oneChannel();
      if (this._stopped) return;
      if (error) throw error;
      if (this._redial) {
        this._redial = false;
        continue;
      }
      await this._pause(this._backoff.delay(last));
    }
  }

  /**
   * Run one channel from its first packet to its last; resolve with the gateway's last CLOSE, and
   * with its error if that is final.
   * @returns {Promise<{last: Close | null, error: Error | null}>}
   */
  async _oneChannel() {
    // The next HELLO carries what the last channel had not sent, so all of it must be durable.
    await this._turns.ask((session) => session.lost());
    const hello = await this._turns.askSettled((session) => session.hello(this.place));
    if (this._stopped) return { last: null, error: null };
    return new Promise((resolve, reject) => {
      let welcomedAt = 0;
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
              welcomedAt = this._now();
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
          if (welcomedAt && this._now() - welcomedAt >= LASTING) this._backoff.succeeded();
          const was = this.there;
          this.there = false;
          if (was) this._changed();
          resolve({ last, error: verdict(last, channel.welcomed) });
        },
      };
      /** @type {Channel} */
      let channel;
      try {
        channel = new Channel(this._WebSocket, this._url, hello, owner, this._now, this._checksums);
      } catch (error) {
        reject(error); // The address is not that of a WebSocket.
        return;
      }
      this._channel = channel;
    });
  }

  /** @param {Channel} channel @param {unknown} error */
  _fault(channel, error) {
    if (error instanceof HopError) channel.fail(error);
  }

  /** @param {number} milliseconds @returns {Promise<void>} */
  _pause(milliseconds) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this._hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Dial at once, in place of an open connection, because the network has changed. */
  reconnect() {
    this._hurry?.();
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
    this._hurry?.();
    this._channel?.close(CloseCode.BYE, "the device closed");
    await this._running;
  }
}
