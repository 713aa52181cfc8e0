/**
 * The ways to the gateway that a device has, without I/O: which is tried next, which rests, and which
 * is of no use. As in the Python SDK (`device/ways.py`), but for one channel at a time.
 */

import { Backoff, verdict } from "./retry.js";

/**
 * @typedef {import("./wire/frames.js").Close} Close
 *
 * @typedef {object} Way
 * @property {string} url The address of the gateway's WebSocket.
 * @property {string} [link] The kind of link: wifi, mno ...
 * @property {string} [network] The name of the network: the operator, the SSID ...
 * @property {string} [token] The credential that this way needs; the device's own by default.
 * @property {number} [preference] A way is used rather than those with a lower one, if it works.
 *
 * @typedef {"idle" | "connecting" | "open" | "suspect" | "resting" | "barred"} WayState
 * @typedef {{way: Way, state: WayState, problem: string, until: number | null}} WayStatus
 */

/** Milliseconds that the next connection waits for the one before it (RFC 8305, section 8). */
const STAGGER = 250;
const LEAST_STAGGER = 100;
const MOST_STAGGER = 2_000;

/** The longest rest of a way in the first minutes without contact, and how long those last. */
const EAGER_REST = 4_000;
const EAGER = 120_000;

/** How long a contact must last before the rests of its way start over. */
const LASTING = 2_000;

/** The most ways of a device. */
export const MOST_WAYS = 32;

class Track {
  /** @param {Way} way @param {Backoff} backoff @param {number} order */
  constructor(way, backoff, order) {
    this.way = way;
    this.backoff = backoff;
    this.order = order;
    /** @type {WayState} */
    this.state = "idle";
    this.problem = "";
    this.until = 0;
    /** The time before which the gateway has asked not to be dialled. */
    this.asked = 0;
    this.failures = 0;
    this.since = 0;
    /** @type {number | null} How long a connection takes. */
    this.usual = null;
  }

  get stagger() {
    return this.usual === null ? STAGGER : Math.min(Math.max(2 * this.usual, LEAST_STAGGER), MOST_STAGGER);
  }
}

export class Ways {
  /**
   * @param {Way[]} ways
   * @param {{first?: number, longest?: number, random?: () => number}} [backoff]
   * @param {number} [now]
   */
  constructor(ways, backoff = {}, now = 0) {
    if (!ways.length || ways.length > MOST_WAYS) throw new RangeError(`a device has 1 to ${MOST_WAYS} ways`);
    this._tracks = ways.map((way, order) => new Track(way, new Backoff(backoff), order));
    /** @type {number | null} Since when there is no contact. */
    this._aloneSince = now;
    /** @type {Error | null} */
    this._error = null;
  }

  /** Whether there is only one way. */
  get alone() {
    return this._tracks.length === 1;
  }

  /** The error because of which no way is tried again; null as long as one is. */
  get final() {
    return this._tracks.every((track) => track.state === "barred") ? this._error : null;
  }

  /** @returns {WayStatus[]} the first to be tried first */
  get status() {
    return this._sorted(this._tracks).map(({ way, state, problem, until }) => ({
      way,
      state,
      problem,
      until: state === "resting" ? until : null,
    }));
  }

  /** @param {Track[]} tracks */
  _sorted(tracks) {
    const rank = (/** @type {Track} */ t) => [t.failures > 1 ? 1 : 0, -(t.way.preference ?? 0), t.failures, t.order];
    return [...tracks].sort((one, other) => {
      const [a, b] = [rank(one), rank(other)];
      const at = a.findIndex((value, index) => value !== b[index]);
      return at < 0 ? 0 : a[at] - b[at];
    });
  }

  /**
   * @param {Way} way
   * @returns {Track}
   */
  _track(way) {
    const track = this._tracks.find((each) => each.way === way);
    if (!track) throw new RangeError("the device does not have this way");
    return track;
  }

  /**
   * The ways that can be tried now, the best first.
   * @param {number} now
   */
  due(now) {
    for (const track of this._tracks) {
      if (track.state === "resting" && track.until <= now) track.state = "idle";
    }
    return this._sorted(this._tracks.filter((track) => track.state === "idle")).map((track) => track.way);
  }

  /** When the next way can be tried, null if none can. */
  get nextDue() {
    const dues = this._tracks.filter((track) => track.state === "resting").map((track) => track.until);
    return dues.length ? Math.min(...dues) : null;
  }

  /**
   * How long the next connection waits for this one.
   * @param {Way} way
   */
  stagger(way) {
    return this._track(way).stagger;
  }

  /** @param {Way} way @param {number} now */
  connecting(way, now) {
    const track = this._track(way);
    track.state = "connecting";
    track.since = now;
  }

  /** @param {Way} way @param {number} now */
  connected(way, now) {
    const track = this._track(way);
    const took = now - track.since;
    track.usual = track.usual === null ? took : (7 * track.usual + took) / 8;
  }

  /**
   * Give up an attempt that has not failed.
   * @param {Way} way
   */
  left(way) {
    this._track(way).state = "idle";
  }

  /** @param {Way} way @param {number} now */
  welcomed(way, now) {
    const track = this._track(way);
    Object.assign(track, { state: "open", since: now, failures: 0, problem: "" });
    this._aloneSince = null;
  }

  /**
   * Note that the gateway does not answer over a way, or does after all.
   * @param {Way} way @param {boolean} silent
   */
  suspect(way, silent) {
    const track = this._track(way);
    if (track.state === "open" || track.state === "suspect") track.state = silent ? "suspect" : "open";
  }

  /**
   * Note that an attempt or a channel has ended.
   * @param {Way} way @param {string} problem @param {number} now
   * @param {{close?: Close | null, welcomed?: boolean}} [how]
   */
  ended(way, problem, now, how = {}) {
    const { close = null, welcomed = false } = how;
    const track = this._track(way);
    track.problem = problem;
    if (welcomed) {
      if (now - track.since >= LASTING) track.backoff.succeeded();
      this._aloneSince ??= now;
      this.hurry(now);
    } else track.failures += 1;
    const error = verdict(close, welcomed);
    if (error) {
      track.state = "barred";
      this._error = error;
      // Another program has this session now: it must not be fought for over other ways.
      if (error.code === "replaced") for (const each of this._tracks) each.state = "barred";
      return;
    }
    const eager = this._aloneSince !== null && now - this._aloneSince < EAGER;
    const pause = track.backoff.delay(null, eager ? EAGER_REST : undefined);
    track.state = "resting";
    track.asked = now + (close?.retryAfterMs ?? 0);
    track.until = track.asked + pause;
  }

  /**
   * End the rests that the gateway has not asked for.
   * @param {number} now
   */
  hurry(now) {
    for (const track of this._tracks) {
      if (track.state === "resting" && track.asked <= now) track.state = "idle";
    }
  }
}
