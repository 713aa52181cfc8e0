/** Sets of numbers as a few ascending ranges: what arrived or was acknowledged beyond a gap. */

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

  /** One more than the largest number; 0 when the set is empty. */
  get stop() {
    return this._ranges.at(-1)?.[1] ?? 0;
  }

  /** @param {number} number */
  has(number) {
    return this._ranges.some(([start, stop]) => start <= number && number < stop);
  }

  /**
   * Return the lowest ranges, at most `most` of them.
   * @param {number} [most] @returns {Ranges}
   */
  ranges(most = Infinity) {
    return this._ranges.slice(0, most).map(([start, stop]) => [start, stop]);
  }

  /**
   * Return at most `most` ranges, lowest first: those that are left out lie before the last one, so that the largest
   * number is always named.
   * @param {number} most @returns {Ranges}
   */
  lowestAndLast(most) {
    const ranges = this.ranges();
    return ranges.length <= most ? ranges : [...ranges.slice(0, most - 1), ranges[ranges.length - 1]];
  }

  /**
   * Add the numbers from `start` to below `stop`; return those that are new.
   * @param {number} start @param {number} stop @returns {Ranges}
   */
  add(start, stop) {
    /** @type {Ranges} */
    const fresh = [];
    /** @type {Ranges} */
    const kept = [];
    let at = start;
    let [low, high] = [start, stop];
    for (const range of this._ranges) {
      // Every range that overlaps or touches the new one is merged with it.
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
   * Remove the numbers below `number`.
   * @param {number} number
   */
  dropBelow(number) {
    this._ranges = this._ranges
      .filter(([, stop]) => stop > number)
      .map(([start, stop]) => [Math.max(start, number), stop]);
  }

  /**
   * Return the numbers from `start` to below `stop` that are not in the set.
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

  /**
   * Return where the numbers that follow `number` without a gap end; remove those and all below.
   * @param {number} number
   */
  takeFrom(number) {
    this.dropBelow(number);
    if (this._ranges[0]?.[0] !== number) return number;
    const [[, stop]] = this._ranges.splice(0, 1);
    return stop;
  }
}
