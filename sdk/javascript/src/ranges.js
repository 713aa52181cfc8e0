/** Numbers as a few ascending ranges: what arrived beyond a gap, what was acknowledged there. */

/** @typedef {import("./wire/frames.js").Ranges} Ranges */

export class RangeSet {
  /** @param {Ranges} [ranges] */
  constructor(ranges = []) {
    /** @type {Ranges} */
    this._ranges = [];
    for (const [start, stop] of ranges) this.add(start, stop);
  }

  get empty() {
    return this._ranges.length === 0;
  }

  /** One more than the largest number; 0 when there is none. */
  get stop() {
    return this._ranges.at(-1)?.[1] ?? 0;
  }

  /** @param {number} number */
  has(number) {
    return this._ranges.some(([start, stop]) => start <= number && number < stop);
  }

  /**
   * The ranges, lowest first, at most so many.
   * @param {number} [most] @returns {Ranges}
   */
  ranges(most = Infinity) {
    return this._ranges.slice(0, most).map(([start, stop]) => [start, stop]);
  }

  /** Add the numbers from `start` to below `stop`; returns those that are new.
   * @param {number} start @param {number} stop @returns {Ranges} */
  add(start, stop) {
    /** @type {Ranges} */
    const fresh = [];
    /** @type {Ranges} */
    const kept = [];
    let at = start;
    let [low, high] = [start, stop];
    for (const range of this._ranges) {
      // Every range that overlaps or touches the new one melts into it.
      if (range[1] < start || range[0] > stop) {
        kept.push(range);
        continue;
      }
      if (at < range[0]) fresh.push([at, range[0]]);
      at = Math.max(at, range[1]);
      low = Math.min(low, range[0]);
      high = Math.max(high, range[1]);
    }
    if (at < stop) fresh.push([at, stop]);
    kept.push([low, high]);
    this._ranges = kept.sort((one, other) => one[0] - other[0]);
    return fresh;
  }

  /**
   * Forget what is below `number`.
   * @param {number} number
   */
  dropBelow(number) {
    this._ranges = this._ranges
      .filter(([, stop]) => stop > number)
      .map(([start, stop]) => [Math.max(start, number), stop]);
  }

  /**
   * What of `start` to below `stop` is not in here.
   * @param {number} start @param {number} stop
   */
  without(start, stop) {
    /** @type {Ranges} */
    const left = [];
    for (const [low, high] of this._ranges) {
      if (low >= stop) break;
      if (start < low) left.push([start, low]);
      start = Math.max(start, high);
    }
    if (start < stop) left.push([start, stop]);
    return left;
  }

  /** How far the numbers go on without a gap from `number`; they and all below leave.
   * @param {number} number */
  takeFrom(number) {
    this.dropBelow(number);
    if (this._ranges[0]?.[0] !== number) return number;
    const [[, stop]] = this._ranges.splice(0, 1);
    return stop;
  }
}
