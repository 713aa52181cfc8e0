/** Timers on a clock that only a test moves. */
export class VirtualTime {
  constructor() {
    this.now = 1_800_000_000_000;
    this._timers = new Map();
    this._next = 1;
    this._real = [globalThis.setTimeout, globalThis.clearTimeout];
    globalThis.setTimeout = (callback, wait) => {
      this._timers.set(this._next, { at: this.now + wait, callback });
      return this._next++;
    };
    globalThis.clearTimeout = (id) => this._timers.delete(id);
  }

  /** Let so many milliseconds pass. */
  tick(wait) {
    const end = this.now + wait;
    for (;;) {
      const due = [...this._timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this._timers.delete(due[0]);
      this.now = Math.max(this.now, due[1].at);
      due[1].callback();
    }
    this.now = end;
  }

  restore() {
    [globalThis.setTimeout, globalThis.clearTimeout] = this._real;
  }
}
