/**
 * An inbox in memory, which lasts as long as its object: for tests, and for devices that may
 * forget.
 */

import { nothingHeld } from "../change.js";

/**
 * @typedef {import("../change.js").Change} Change
 * @typedef {import("../change.js").Held} Held
 *
 * @typedef {object} Inbox The durable memory of one device.
 * @property {() => Promise<Held>} load Returns all that was committed.
 * @property {(change: Change) => Promise<void>} apply Makes all of a change durable, or nothing.
 * @property {() => Promise<void>} close Releases the file or database.
 */

/** The rows of an inbox, updated by applying changes. */
export class Rows {
  /** @param {Held} [held] */
  constructor(held = nothingHeld()) {
    this.state = held.state;
    this._inbox = new Map(held.inbox.map((row) => [row.position, row]));
    this._outbox = new Map(held.outbox.map((row) => [row.id, row]));
    this._old = held.oldKeys;
    this._young = held.youngKeys;
  }

  get size() {
    return this._inbox.size + this._outbox.size + this._old.length + this._young.length;
  }

  /** @param {Change} change */
  apply(change) {
    if (change.detached) {
      for (const [position, row] of this._inbox) this._inbox.set(position, { ...row, number: null });
    }
    for (const row of change.stored) this._inbox.set(row.position, row);
    for (const [position, number] of change.adopted) {
      const row = this._inbox.get(position);
      if (row) this._inbox.set(position, { ...row, number });
    }
    for (const position of change.removed) this._inbox.delete(position);
    if (change.state.generation !== this.state.generation) {
      this._old = this._young;
      this._young = [];
    }
    this._young.push(...change.keys);
    for (const row of change.queued) this._outbox.set(row.id, row);
    for (const [id, number] of change.renumbered) {
      const row = this._outbox.get(id);
      if (row) this._outbox.set(id, { ...row, number });
    }
    for (const id of change.taken) this._outbox.delete(id);
    this.state = change.state;
  }

  /** @returns {Held} */
  held() {
    return {
      state: this.state,
      inbox: [...this._inbox.values()].sort((a, b) => a.position - b.position),
      outbox: [...this._outbox.values()].sort((a, b) => a.number - b.number),
      oldKeys: [...this._old],
      youngKeys: [...this._young],
    };
  }
}

/** @implements {Inbox} */
export class MemoryInbox {
  constructor() {
    this._rows = new Rows();
  }

  async load() {
    return this._rows.held();
  }

  /** @param {Change} change */
  async apply(change) {
    this._rows.apply(change);
  }

  async close() {}
}
