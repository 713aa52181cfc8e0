/**
 * The incoming half of a session: order, duplicates, deadlines. A message is taken in, waits for
 * its turn, and is finished when the application is done with it. Whatever must survive a crash is
 * collected for the next change.
 */

import { Inbound } from "./inbound.js";
import { KeyMemory } from "./keys.js";
import { Message, NO_POSITION, idOf, refusalIn } from "./message.js";
import { RangeSet } from "./ranges.js";
import { HandoverQueue } from "./handover.js";
import { DEFAULT_CONTENT_TYPE, MAX_RANGES, Reliability } from "./wire/frames.js";

/**
 * @typedef {import("./change.js").Change} Change
 * @typedef {import("./change.js").Held} Held
 * @typedef {import("./wire/frames.js").Ranges} Ranges
 * @typedef {import("./wire/frames.js").Credit} Credit
 */

/** @type {Readonly<Credit>} */
const PAUSE = Object.freeze({ messages: 0, bytes: 0 });

export class Arrivals {
  /** @param {import("./session.js").Terms} terms @param {Held} held */
  constructor(terms, held) {
    const state = held.state;
    this._terms = terms;
    this._defaultType = terms.accept[0] ?? DEFAULT_CONTENT_TYPE;
    this._keys = new KeyMemory(terms.keys, held);
    /** @type {Map<number, Message>} Every message that is not finished, by position. */
    this._open = new Map();
    /**
     * @type {Map<string, Message>} The messages that are not finished and whose turn has come, by
     *   id.
     */
    this._known = new Map();
    /** @type {Map<number, Message>} The messages that arrived beyond a gap, by number. */
    this._gapped = new Map();
    this.handover = new HandoverQueue(terms.prefetch, state.offered, (message) => this.drop(message));
    this.base = state.base;
    this.heldBytes = 0;
    this._top = 0;
    this._paused = false;
    /** @type {Message[]} Messages that were dropped as too late since the owner last looked. */
    this.lapsed = [];
    /**
     * @type {[string, import("./message.js").Refusal][]} Refusals of our messages, by their ids.
     */
    this.refusals = [];
    /** @type {[string, Message][]} Answers to our messages, by the ids of our messages. */
    this.answers = [];
    /** @type {Set<string>} Ids of our messages that a caller awaits the answer of. */
    this.expected = new Set();
    this._dropped = new RangeSet(state.dropped);
    this._skipped = new RangeSet(state.skipped);
    this._news = new RangeSet();
    /** @type {Message[]} */
    this._unstored = [];
    /** @type {[number, number][]} */
    this._adopted = [];
    /** @type {number[]} */
    this._removed = [];
    this._detached = false;
    this.dirty = false;
    /** @type {Inbound<Message>} */
    this._inbound = new Inbound(state.received, state.delivered);
    this._restore(held);
  }

  /** @param {Held} held */
  _restore({ state, inbox }) {
    const unfinished = new RangeSet();
    for (const row of inbox) {
      const message = new Message(row.frame, row.defaultType, row.position, row.number);
      message.stored = true;
      message.redelivered ||= row.position < state.offered;
      this._hold(message);
      this._top = Math.max(this._top, row.position + 1);
      if (row.number !== null && row.number >= state.received) {
        this._inbound.receive(row.number, message);
        this._gapped.set(row.number, message);
        continue;
      }
      this._recognise(message);
      message.offered = row.position < state.offered;
      this.handover.add(message);
      if (row.number !== null) unfinished.add(row.number, row.number + 1);
    }
    for (const [start, stop] of unfinished.without(state.delivered, state.received)) {
      this._inbound.deliver(start, stop - start);
    }
    for (const [start, stop] of state.skipped) this._inbound.skip(start, stop - start);
  }

  /** The number of messages that are not finished. */
  get held() {
    return this._open.size;
  }

  get received() {
    return this._inbound.received;
  }

  get delivered() {
    return this._inbound.delivered;
  }

  get duplicates() {
    return this._inbound.duplicates;
  }

  get generation() {
    return this._keys.generation;
  }

  /** The newest dropped numbers that the gateway may not know of, as many as a HELLO takes. */
  get dropped() {
    return this._dropped.ranges().slice(-MAX_RANGES);
  }

  get skipped() {
    return this._skipped.ranges();
  }

  acknowledgement() {
    return this._inbound.acknowledgement();
  }

  /**
   * Return the credit that the gateway gets with a HELLO.
   * @returns {Credit}
   */
  room() {
    const { window, inboxMessages, inboxBytes } = this._terms;
    const messages = Math.min(window.messages, inboxMessages - this.held);
    const bytes = Math.min(window.bytes, inboxBytes - this.heldBytes);
    return messages > 0 && bytes > 0 ? { messages, bytes } : PAUSE;
  }

  /** Return the gateway's window: none while the next messages might not fit into the inbox. */
  window() {
    const { window, inboxMessages, inboxBytes } = this._terms;
    // Opened again only at the half, so that a full inbox does not open and close all the time.
    const share = this._paused ? 0.5 : 1;
    this._paused =
      this.held > (inboxMessages - window.messages) * share ||
      this.heldBytes > (inboxBytes - window.bytes) * share;
    return this._paused ? PAUSE : window;
  }

  // Frames from the gateway.

  /** @param {import("./wire/frames.js").MessageFrame} frame @param {number} now */
  take(frame, now) {
    if (frame.seq === null) {
      if (this.handover.casual < this._terms.window.messages) {
        this.handover.add(new Message(frame, this._defaultType, NO_POSITION, null));
      }
      return;
    }
    const number = frame.seq;
    const message = new Message(frame, this._defaultType, this.base + number, number);
    const duplicates = this._inbound.duplicates;
    const ready = this._inbound.receive(number, message);
    if (ready.length) {
      this._hold(message);
      this._arrive(message, now);
      this._moveUp(ready.slice(1), now);
    } else if (this._inbound.duplicates === duplicates) {
      this._hold(message);
      this._gapped.set(number, message);
      this._top = Math.max(this._top, message.position + 1);
      this._unstored.push(message);
    }
    this.dirty = true;
  }

  /**
   * Close the numbers that the gateway has skipped.
   * @param {import("./wire/frames.js").Skip} skip @param {number} now
   */
  skip({ first, count }, now) {
    // Called first: if it throws, nothing has changed.
    const ready = this._inbound.skip(first, count);
    for (const [number, message] of [...this._gapped]) {
      if (first <= number && number < first + count) {
        this._gapped.delete(number);
        this._end(message);
      }
    }
    this._skipped.add(first, first + count);
    this._skipped.dropBelow(this._inbound.received);
    this._moveUp(ready, now);
    this.dirty = true;
  }

  /**
   * Close the missing numbers below `count`, which the gateway will not send.
   * @param {number} count @param {number} now
   */
  closeBelow(count, now) {
    if (count > this._inbound.received) {
      this._moveUp(this._inbound.closeBelow(count), now);
      this.dirty = true;
    }
  }

  /**
   * Forget dropped numbers that the gateway now knows of.
   * @param {Ranges} ranges
   */
  told(ranges) {
    if (this._dropped.empty) return;
    const known = new RangeSet(ranges);
    this._dropped = new RangeSet(this._dropped.ranges().flatMap(([start, stop]) => known.without(start, stop)));
    this.dirty = true;
  }

  /**
   * Start a new epoch: numbers count from 0, and messages that are not finished keep their places
   * before them. A gateway that knows the old numbering (`related`) sends again what waits behind a
   * gap, unless we had acknowledged that; any other gateway knows nothing of it.
   * @param {boolean} related
   */
  startOver(related) {
    this.base = Math.max(this.base + this._inbound.received, this._top);
    for (const number of [...this._gapped.keys()].sort((a, b) => a - b)) {
      const message = /** @type {Message} */ (this._gapped.get(number));
      if (related && message.reliability !== Reliability.AT_LEAST_ONCE_DELIVERY) this._end(message);
      else {
        this._recognise(message);
        this.handover.add(message);
      }
    }
    this._gapped.clear();
    for (const message of this._open.values()) message.number = null;
    this._inbound = new Inbound();
    this._adopted = [];
    this._dropped = new RangeSet();
    this._skipped = new RangeSet();
    this._news = new RangeSet();
    this._detached = true;
    this.dirty = true;
  }

  // Calls from the application.

  /**
   * Finish a message that the application is done with; a second call changes nothing.
   * @param {Message} message
   */
  finish(message) {
    if (message.finished) return;
    if (message.frame.key !== null && message.position !== NO_POSITION) this._keys.add(message.id);
    this._end(message);
  }

  /**
   * Drop a message that is too late for the application, and note that for the gateway.
   * @param {Message} message
   */
  drop(message) {
    if (message.finished) return;
    this.lapsed.push(message);
    if (message.number !== null) {
      this._dropped.add(message.number, message.number + 1);
      this._news.add(message.number, message.number + 1);
    }
    this._end(message);
  }

  /**
   * Add to `change` what must survive, and offer the messages that may be offered with it.
   * @param {Change} change
   */
  collect(change) {
    this.handover.offer();
    change.detached = this._detached;
    this._detached = false;
    for (const message of this._unstored) {
      if (message.finished || message.stored) continue;
      message.stored = true;
      const { position, number, frame, defaultType } = message;
      change.stored.push({ position, number, frame, defaultType });
    }
    change.adopted = this._adopted;
    change.removed = this._removed;
    this._unstored = [];
    this._adopted = [];
    this._removed = [];
    change.keys = this._keys.takeAdded();
    this._skipped.dropBelow(this._inbound.received);
    if (this._dropped.ranges().length > MAX_RANGES) this._dropped = new RangeSet(this.dropped);
    this.dirty = false;
  }

  /** Return the numbers that were dropped since the last change. */
  news() {
    const news = this._news.ranges();
    this._news = new RangeSet();
    return news;
  }

  // Helpers.

  /**
   * Take messages whose gap has been closed.
   * @param {Message[]} messages @param {number} now
   */
  _moveUp(messages, now) {
    for (const message of messages) {
      this._gapped.delete(/** @type {number} */ (message.number));
      this._arrive(message, now);
    }
  }

  /**
   * Take a message whose number is due: it is known already, too late, or new.
   * @param {Message} message @param {number} now
   */
  _arrive(message, now) {
    if (message.frame.key !== null) {
      if (this._keys.has(message.id)) {
        this._end(message);
        return;
      }
      const known = this._known.get(message.id);
      if (known) {
        this._adopt(known, message);
        return;
      }
      this._known.set(message.id, message);
    }
    if (message.deadline !== null && now >= message.deadline) {
      this.drop(message);
      return;
    }
    if (message.inReplyTo !== null && this._answered(message, idOf(message.inReplyTo))) return;
    if (!message.stored) this._unstored.push(message);
    this.handover.add(message);
  }

  /**
   * Whether a message answers one of ours, and so does not wait for its turn.
   * @param {Message} message @param {string} request
   */
  _answered(message, request) {
    const against = refusalIn(message);
    if (against) this.refusals.push([request, against]);
    else if (this.expected.has(request)) this.answers.push([request, message]);
    else if (message.headers.answer) {
      // The answer came too late, or is the second one.
      this.drop(message);
      return true;
    } else return false;
    this.expected.delete(request);
    this.finish(message);
    return true;
  }

  /**
   * Give a message that is already in the inbox its new number, which is finished with the message.
   * Its older number is closed: the gateway took that back to send the message with the new one.
   * @param {Message} known @param {Message} again
   */
  _adopt(known, again) {
    const number = /** @type {number} */ (again.number);
    again.number = known.number;
    known.number = number;
    if (known.stored) this._adopted.push([known.position, number]);
    this._end(again);
  }

  /** @param {Message} message */
  _hold(message) {
    this._open.set(message.position, message);
    this.heldBytes += message.body.length;
  }

  /** @param {Message} message */
  _recognise(message) {
    if (message.frame.key !== null) this._known.set(message.id, message);
  }

  /**
   * Close the number of a message, and keep nothing of the message.
   * @param {Message} message
   */
  _end(message) {
    message.finished = true;
    if (message.position === NO_POSITION) return;
    this._open.delete(message.position);
    this.heldBytes -= message.body.length;
    if (this._known.get(message.id) === message) this._known.delete(message.id);
    this.handover.finished(message);
    if (message.stored) this._removed.push(message.position);
    if (message.number !== null && message.number < this._inbound.received) {
      this._inbound.deliver(message.number);
    }
    this.dirty = true;
  }
}
