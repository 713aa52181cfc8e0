/**
 * A device's side of the conversation, without I/O: everything that decides or keeps a promise.
 *
 * The owner of a session passes in what happened, asks for the next `change`, makes it durable in
 * an inbox and calls `committed`, sends the `frames` that may leave now, and passes `ready`
 * messages on. Nothing is acknowledged, and none of our messages is sent, before the change that it
 * depends on is durable.
 */

import { Arrivals } from "./arrivals.js";
import { idOf, nextKey } from "./message.js";
import { Outbox } from "./outbox.js";
import { accept, sameNumbering } from "./persistence.js";
import { RangeSet } from "./ranges.js";
import { DEFAULT_WINDOW, MAX_RANGES, Reliability, ack } from "./wire/frames.js";

/**
 * @typedef {import("./change.js").Change} Change
 * @typedef {import("./change.js").State} State
 * @typedef {import("./message.js").Message} Message
 * @typedef {import("./wire/frames.js").Ack} Ack
 * @typedef {import("./wire/frames.js").Frame} Frame
 * @typedef {import("./wire/frames.js").Hello} Hello
 * @typedef {import("./wire/frames.js").Welcome} Welcome
 * @typedef {import("./wire/frames.js").Headers} Headers
 * @typedef {import("./wire/frames.js").Ranges} Ranges
 *
 * @typedef {object} Terms The identity of this device, and its limits.
 * @property {string} app
 * @property {string} name
 * @property {string} [token]
 * @property {string[]} accept Content types that the application understands, the preferred one first.
 * @property {import("./wire/frames.js").Credit} window What the gateway may have on its way to the device.
 * @property {number} prefetch Messages that a handler may be offered before it is done with the first.
 * @property {number} inboxMessages
 * @property {number} inboxBytes Bytes of unfinished messages; beyond this the gateway is asked to pause.
 * @property {number} outboxMessages
 * @property {number} outboxBytes Bytes that the gateway may not have; beyond this `send` refuses.
 * @property {number} keys Past messages whose ids are remembered, to recognise them in a new epoch.
 * @property {number} [preserve] Seconds that the gateway shall keep the session of an absent device.
 *
 * @typedef {{n: number, state: State, ack: Ack, news: Ranges}} Snapshot
 *   The state that holds when change `n` is durable.
 *
 * @typedef {{kind: "sent" | "accepted", id: string}
 *   | {kind: "refused", id: string, refusal: import("./message.js").Refusal}
 *   | {kind: "answered", id: string, message: Message}
 *   | {kind: "lapsed", message: Message}} SessionEvent
 */

/** Bytes sent in one turn: enough to fill a fast link, few enough to lose with a broken one. */
const FLUSH_SIZE = 64 * 1024;

/** @type {Omit<Terms, "app" | "name">} */
export const DEFAULT_TERMS = {
  accept: [],
  window: { messages: 1024, bytes: 2 << 20 },
  prefetch: 256,
  inboxMessages: 10_000,
  inboxBytes: 64 << 20,
  outboxMessages: 10_000,
  outboxBytes: 64 << 20,
  keys: 16_384,
};

export class Session {
  /** @param {Terms} terms @param {import("./change.js").Held} held */
  constructor(terms, held) {
    const { window, inboxMessages, inboxBytes, prefetch } = terms;
    if (window.messages < 1 || window.messages > 4096) throw new RangeError("a window must have 1 to 4096 messages");
    if (inboxMessages < window.messages || inboxBytes < window.bytes || prefetch < 1) {
      throw new RangeError("the inbox must hold a window, and prefetch must be at least 1");
    }
    const state = held.state;
    this.terms = terms;
    this._arrivals = new Arrivals(terms, held);
    this._outbox = new Outbox(terms, held);
    this._lastKey = state.lastKey;
    this._incarnation = state.incarnation;
    this._epoch = state.epoch;
    this._changes = 0;
    /** @type {Snapshot[]} */
    this._pending = [];
    /** @type {Snapshot} */
    this._durable = { n: 0, state, ack: this._arrivals.acknowledgement(), news: [] };
    /** The change that must be durable before anything leaves on this channel. */
    this._gate = 0;
    this._dirty = false;
    this._untold = new RangeSet();
    this._open = false;
    this._told = ack(0, 0);
    this._toldWindow = terms.window;
    this._repeat = false;
  }

  // The channel.

  /**
   * Return the HELLO to dial with. Only durable state may be claimed, so everything must be
   * `settled`.
   * @param {{link?: string, network?: string, heartbeat?: number}} [place] @returns {Hello}
   */
  hello(place = {}) {
    if (!this.settled) throw new Error("the device cannot dial again while a change is not durable");
    const { app, name, token, accept: types, preserve } = this.terms;
    const { state, ack: said } = this._durable;
    /** @type {Hello} */
    const hello = {
      type: "hello",
      app,
      device: name,
      token,
      accept: types,
      window: this._arrivals.room(),
      preserve,
      ...place,
    };
    if (state.epoch === null || state.incarnation === null) return hello;
    return {
      ...hello,
      incarnation: state.incarnation,
      epoch: state.epoch,
      received: said.received,
      delivered: said.delivered,
      individual: said.individual,
      dropped: state.dropped,
      ...(this._outbox.waiting ? { assigned: state.assigned } : {}),
    };
  }

  /**
   * Take the gateway's WELCOME; return false to close this channel and dial again. Throws a
   * HopError when the answer is impossible.
   * @param {Hello} hello @param {Welcome} welcome @param {number} now
   */
  welcomed(hello, welcome, now) {
    this.lost();
    const ours = { incarnation: this._incarnation, epoch: this._epoch, assigned: this._outbox.assigned };
    const answer = accept(ours, hello, welcome);
    if (answer.kind === "redial") {
      if (answer.forget) this._begin(null, null, true);
      return false;
    }
    if (answer.kind === "continue") {
      this._arrivals.closeBelow(answer.closed, now);
      // The gateway sends WELCOME when the contents of HELLO are durable there.
      this._arrivals.told(hello.dropped ?? []);
      this._untold = new RangeSet(this._arrivals.dropped);
      this._told = ack(hello.received ?? 0, hello.delivered ?? 0, hello.individual ?? []);
      this._gate = 0;
      this._outbox.resume(answer.ack, welcome.window, welcome.maxFrame);
    } else {
      const related =
        welcome.superseded !== undefined ||
        sameNumbering({ incarnation: welcome.incarnation }, { incarnation: hello.incarnation });
      this._begin(welcome.incarnation, welcome.epoch, related);
      this._outbox.startOver(answer.dropBelow);
      this._told = ack(0, 0);
      this._gate = this._changes + 1;
      this._outbox.resume(ack(0, 0), welcome.window, welcome.maxFrame);
    }
    this._toldWindow = hello.window ?? DEFAULT_WINDOW;
    this._open = true;
    return true;
  }

  /** @param {Uint8Array | null} incarnation @param {number | null} epoch @param {boolean} related */
  _begin(incarnation, epoch, related) {
    this._incarnation = incarnation;
    this._epoch = epoch;
    this._arrivals.startOver(related);
    this._untold = new RangeSet();
    this._dirty = true;
  }

  /** Note that the channel has ended; the next HELLO carries what it had not sent. */
  lost() {
    this._open = false;
    this._untold = new RangeSet();
    this._outbox.lost();
  }

  /**
   * Handle frames that came in. Throws a HopError when the gateway says something impossible.
   * @param {Frame[]} frames @param {number} now
   */
  received(frames, now) {
    const duplicates = this._arrivals.duplicates;
    for (const frame of frames) {
      if (frame.type === "message") this._arrivals.take(frame, now);
      else if (frame.type === "ack") this._outbox.acknowledge(frame);
      else if (frame.type === "skip") this._arrivals.skip(frame, now);
      else if (frame.type === "credit") this._outbox.credit(frame);
    }
    // A duplicate arrived: our acknowledgement may have been lost.
    if (this._arrivals.duplicates !== duplicates) this._repeat = true;
  }

  // The application.

  /**
   * Queue a message for the gateway; return the id that its session events carry.
   * @param {import("./compose.js").Draft} draft @param {number} now
   */
  queue(draft, now) {
    const key = nextKey(this._lastKey, now);
    /** @type {import("./wire/frames.js").MessageFrame} */
    const frame = {
      type: "message",
      seq: null,
      key,
      topic: draft.topic ?? null,
      headers: draft.headers,
      body: draft.body ?? new Uint8Array(0),
    };
    this._outbox.check(frame);
    this._outbox.queue(frame, draft.headers.reliability === Reliability.BEST_EFFORT);
    this._lastKey = key;
    if (draft.expects) this._arrivals.expected.add(idOf(key));
    return idOf(key);
  }

  /**
   * Stop awaiting the answer to a message: if it comes, it is dropped.
   * @param {string} id
   */
  giveUp(id) {
    this._arrivals.expected.delete(id);
  }

  /**
   * Return the messages to pass to the application now; `finished` is called when it is done with
   * one.
   * @param {number} now
   */
  ready(now) {
    return this._arrivals.handover.ready(now, this._durable.state.offered);
  }

  /** @param {Message} message */
  finished(message) {
    this._arrivals.finish(message);
  }

  /**
   * Drop a message whose deadline passed before the application looked at it.
   * @param {Message} message
   */
  lapsed(message) {
    this._arrivals.drop(message);
  }

  // The owner.

  /**
   * Return the change to make durable next, or null if there is none.
   * @param {boolean} [flush] @returns {Change | null}
   */
  change(flush = false) {
    const arrivals = this._arrivals;
    const outbox = this._outbox;
    if (!(this._dirty || arrivals.dirty || outbox.dirty || flush)) return null;
    this._dirty = false;
    this._changes += 1;
    /** @type {Change} */
    const change = {
      n: this._changes,
      state: this._durable.state,
      detached: false,
      stored: [],
      adopted: [],
      removed: [],
      keys: [],
      queued: [],
      renumbered: [],
      taken: [],
    };
    arrivals.collect(change);
    outbox.collect(change);
    change.state = {
      incarnation: this._incarnation,
      epoch: this._epoch,
      base: arrivals.base,
      received: arrivals.received,
      delivered: arrivals.delivered,
      dropped: arrivals.dropped,
      skipped: arrivals.skipped,
      offered: arrivals.handover.offered,
      assigned: outbox.assigned,
      accepted: outbox.received,
      lastKey: this._lastKey,
      generation: arrivals.generation,
    };
    const { n, state } = change;
    this._pending.push({ n, state, ack: arrivals.acknowledgement(), news: arrivals.news() });
    return change;
  }

  /**
   * Note that change `n`, and all before it, is durable.
   * @param {number} n
   */
  committed(n) {
    while (this._pending.length && this._pending[0].n <= n) {
      this._durable = /** @type {Snapshot} */ (this._pending.shift());
      if (this._durable.state.epoch !== this._epoch) continue;
      for (const [start, stop] of this._durable.news) this._untold.add(start, stop);
    }
  }

  /**
   * Return the frames that may leave over the open channel now; without `room` only small ones.
   * @param {boolean} room @returns {Frame[]}
   */
  frames(room) {
    if (!this._open || this._durable.n < this._gate) return [];
    /** @type {Frame[]} */
    const frames = [];
    while (!this._untold.empty) {
      // Sent before the acknowledgement that covers these numbers.
      const ranges = this._untold.ranges(MAX_RANGES);
      this._untold.dropBelow(ranges[ranges.length - 1][1]);
      frames.push({ type: "dropped", ranges });
    }
    const said = this._durable.ack;
    if (this._repeat || !sameAck(said, this._told)) {
      this._told = said;
      this._repeat = false;
      frames.push(said);
    }
    const window = this._arrivals.window();
    if (window.messages !== this._toldWindow.messages || window.bytes !== this._toldWindow.bytes) {
      this._toldWindow = window;
      frames.push({ type: "credit", messages: window.messages, bytes: window.bytes });
    }
    if (room) frames.push(...this._outbox.frames(this._durable.state.assigned, FLUSH_SIZE));
    return frames;
  }

  /** Whether the last `frames` were cut short. */
  get more() {
    return this._outbox.more;
  }

  /**
   * Return the session events since the last call, for the application.
   * @returns {SessionEvent[]}
   */
  events() {
    const { _arrivals: arrivals, _outbox: outbox } = this;
    /** @type {SessionEvent[]} */
    const events = [
      ...outbox.sent.splice(0).map((id) => /** @type {SessionEvent} */ ({ kind: "sent", id })),
      ...outbox.accepted.splice(0).map((id) => /** @type {SessionEvent} */ ({ kind: "accepted", id })),
    ];
    for (const [id, refusal] of [...outbox.refusals.splice(0), ...arrivals.refusals.splice(0)]) {
      events.push({ kind: "refused", id, refusal });
    }
    for (const [id, message] of arrivals.answers.splice(0)) events.push({ kind: "answered", id, message });
    for (const message of arrivals.lapsed.splice(0)) events.push({ kind: "lapsed", message });
    return events;
  }

  /** The number of messages that the application is not done with. */
  get held() {
    return this._arrivals.held;
  }

  /** The number of messages that the gateway may not have. */
  get waiting() {
    return this._outbox.waiting;
  }

  /** Whether every change so far is durable. */
  get settled() {
    return !this._pending.length && !(this._dirty || this._arrivals.dirty || this._outbox.dirty);
  }
}

/** @param {Ack} one @param {Ack} other */
function sameAck(one, other) {
  return (
    one.received === other.received &&
    one.delivered === other.delivered &&
    one.individual.length === other.individual.length &&
    one.individual.every(([start, stop], i) => start === other.individual[i][0] && stop === other.individual[i][1])
  );
}
