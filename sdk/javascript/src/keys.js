/**
 * Remembers which messages the application is done with, by id, to recognise them in a new epoch.
 */

/**
 * At least the last `limit` ids, at most twice as many: when the young generation is full, the old
 * one is forgotten at once.
 */
export class KeyMemory {
  /** @param {number} limit @param {import("./change.js").Held} held */
  constructor(limit, held) {
    this._limit = limit;
    this._old = new Set(held.oldKeys);
    this._young = new Set(held.youngKeys);
    /** @type {string[]} */
    this._added = [];
    this.generation = held.state.generation;
  }

  /** @param {string} id */
  has(id) {
    return this._young.has(id) || this._old.has(id);
  }

  /** @param {string} id */
  add(id) {
    this._young.add(id);
    this._added.push(id);
    if (this._young.size >= this._limit) {
      this._old = this._young;
      this._young = new Set();
      this.generation += 1;
    }
  }

  takeAdded() {
    const added = this._added;
    this._added = [];
    return added;
  }
}
