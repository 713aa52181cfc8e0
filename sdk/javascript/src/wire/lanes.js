/**
 * What the codec needs for lanes other than lane 0: the contexts of a channel's lanes, and the
 * fields of a handshake that name lanes (docs/hop-protocol.md, "Lanes").
 */

import { malformed } from "../errors.js";
import { Reader, Writer } from "./bytes.js";
import { MAX_LANES, MAX_RANGES } from "./frames.js";

/**
 * @typedef {import("./frames.js").Ranges} Ranges
 * @typedef {import("./frames.js").LaneClaim} LaneClaim
 * @typedef {import("./frames.js").LaneClaims} LaneClaims
 * @typedef {{next: number, key: bigint}} MessageContext The next number of a lane, and its last key.
 * @typedef {{received: number, delivered: number}} AckContext The counts acknowledged last in a lane.
 */

/** The lowest lane besides lane 0. */
export const FIRST_LANE = 2;

/** The most lanes that a channel remembers, in messages and in acknowledgements. */
const MOST_CONTEXTS = 2 * MAX_LANES;

/** The most numbers in one field: all lanes, and as many pairs as they may have together. */
const MOST_NUMBERS = 1 + 5 * MAX_LANES + 4 * MAX_RANGES;

/**
 * What one direction of a channel remembers of its lanes; encoder and decoder forget the same ones.
 */
export class LaneContexts {
  constructor() {
    /** @type {Map<number, MessageContext>} */
    this._messages = new Map();
    /** @type {Map<number, AckContext>} */
    this._acks = new Map();
    this._lastKey = 0n;
  }

  /**
   * Return what the next message of a lane is relative to; `key` is the last one of lane 0.
   * @param {number} lane @param {bigint} key @returns {MessageContext}
   */
  nextMessage(lane, key) {
    return this._messages.get(lane) ?? { next: 0, key: key > this._lastKey ? key : this._lastKey };
  }

  /** @param {number} lane @param {MessageContext} context */
  noteMessage(lane, context) {
    this._lastKey = context.key;
    put(this._messages, lane, context);
  }

  /** @param {number} lane @returns {AckContext} */
  lastAcknowledged(lane) {
    return this._acks.get(lane) ?? { received: 0, delivered: 0 };
  }

  /** @param {number} lane @param {AckContext} context */
  noteAck(lane, context) {
    put(this._acks, lane, context);
  }
}

/**
 * Set a context; the one that was made first is forgotten when there are too many.
 * @template C @param {Map<number, C>} contexts @param {number} lane @param {C} context
 */
function put(contexts, lane, context) {
  contexts.set(lane, context);
  if (contexts.size > MOST_CONTEXTS) contexts.delete(/** @type {number} */ (contexts.keys().next().value));
}

/** @param {Reader} reader @returns {number} */
export function readLane(reader) {
  const lane = reader.varint();
  if (lane < FIRST_LANE) throw malformed("a lane has an impossible number", { lane });
  return lane;
}

/** @param {number} lane @returns {number} */
export function checkedLane(lane) {
  if (!(lane >= FIRST_LANE)) throw new RangeError(`a lane beside lane 0 has a number above 1: ${lane}`);
  return lane;
}

/**
 * Encode pairs (gap, run), the first gap counted from `base`.
 * @param {Writer} out @param {number} base @param {Ranges} ranges
 */
export function putRanges(out, base, ranges) {
  if (ranges.length > MAX_RANGES) throw new RangeError(`at most ${MAX_RANGES} ranges can be sent at once`);
  let at = base;
  for (const [start, stop] of ranges) {
    if (!(at < start && start < stop)) throw new RangeError("ranges ascend, with gaps between them");
    out.varint(start - at).varint(stop - start);
    at = stop;
  }
}

/** The numbers of a field, taken one after the other. */
class LaneNumbers {
  /** @param {Uint8Array} data */
  constructor(data) {
    this._reader = new Reader(data);
    this._count = 0;
    this._pairs = 0;
    this._last = 0;
    this._lanes = 0;
  }

  get done() {
    return this._reader.done;
  }

  take() {
    if (this._reader.done) throw malformed("a field ends inside a lane");
    if (this._count === MOST_NUMBERS) throw malformed("there are more numbers than a list may have", { most: MOST_NUMBERS });
    this._count += 1;
    return this._reader.varint();
  }

  /** Take the lane that comes next: lanes ascend by their numbers, and there are not too many. */
  lane() {
    const lane = this.take();
    this._lanes += 1;
    const number = Math.floor(lane / 2);
    if (number <= this._last || lane < FIRST_LANE || this._lanes > MAX_LANES) {
      throw malformed("lanes must ascend, and there may be 64 of them", { lane });
    }
    this._last = number;
    return lane;
  }

  /** @param {number} base @returns {Ranges} */
  ranges(base) {
    const count = this.take();
    this._pairs += count;
    if (this._pairs > 2 * MAX_RANGES || count > MAX_RANGES) {
      throw malformed("there are more ranges of lanes than a field may have");
    }
    /** @type {Ranges} */
    const ranges = [];
    let at = base;
    for (let index = 0; index < count; index += 1) {
      const start = at + this.take();
      const stop = start + this.take();
      if (!(at < start && start < stop && stop <= Number.MAX_SAFE_INTEGER)) {
        throw malformed("an individual acknowledgement has an empty or endless gap or run");
      }
      ranges.push([start, stop]);
      at = stop;
    }
    return ranges;
  }
}

/** @param {Writer} out @param {number} base @param {Ranges} ranges */
function putPairs(out, base, ranges) {
  out.varint(ranges.length);
  putRanges(out, base, ranges);
}

/**
 * The claims of a HELLO, which say what was delivered, or of a WELCOME, which do not.
 * @param {boolean} withDelivered @returns {import("./fields.js").Kind}
 */
const claimsKind = (withDelivered) => ({
  write(/** @type {LaneClaims} */ claims) {
    const out = new Writer().varint(claims.seen);
    for (const { lane, received = 0, delivered = 0, individual = [], finished = [] } of claims.lanes ?? []) {
      out.varint(lane).varint(received);
      if (withDelivered) out.varint(received - delivered);
      putPairs(out, received, individual);
      if (lane & 1) putPairs(out, withDelivered ? delivered : received, finished);
      else if (finished.length) throw new RangeError("only a lane without order has numbers finished beyond a gap");
    }
    return out.take();
  },
  read(data) {
    const numbers = new LaneNumbers(data);
    const seen = numbers.take();
    /** @type {LaneClaim[]} */
    const lanes = [];
    while (!numbers.done) {
      const lane = numbers.lane();
      if (Math.floor(lane / 2) >= seen) throw malformed("a lane is named that was not seen", { lane });
      const received = numbers.take();
      const behind = withDelivered ? numbers.take() : 0;
      if (behind > received) throw malformed("a lane has less than nothing delivered", { lane });
      const individual = numbers.ranges(received);
      const finished = lane & 1 ? numbers.ranges(received - behind) : [];
      lanes.push({ lane, received, delivered: withDelivered ? received - behind : 0, individual, finished });
    }
    return { seen, lanes };
  },
});

export const LANES_IN_HELLO = claimsKind(true);
export const LANES_IN_WELCOME = claimsKind(false);

/** @type {import("./fields.js").Kind} For each lane its dropped numbers. */
export const LANE_DROPPED = {
  write(/** @type {[number, Ranges][]} */ lanes) {
    const out = new Writer();
    for (const [lane, ranges] of lanes) putPairs(out.varint(lane), -1, ranges);
    return out.take();
  },
  read(data) {
    const numbers = new LaneNumbers(data);
    /** @type {[number, Ranges][]} */
    const lanes = [];
    while (!numbers.done) lanes.push([numbers.lane(), numbers.ranges(-1)]);
    return lanes;
  },
};

/** @type {import("./fields.js").Kind} For each lane a count. */
export const LANE_COUNTS = {
  write(/** @type {[number, number][]} */ lanes) {
    const out = new Writer();
    for (const [lane, count] of lanes) out.varint(lane).varint(count);
    return out.take();
  },
  read(data) {
    const numbers = new LaneNumbers(data);
    /** @type {[number, number][]} */
    const lanes = [];
    while (!numbers.done) lanes.push([numbers.lane(), numbers.take()]);
    return lanes;
  },
};

/** @type {import("./fields.js").Kind} For each lane a count, and without order the ranges beyond it. */
export const LANE_HELD = {
  write(/** @type {[number, number, Ranges][]} */ lanes) {
    const out = new Writer();
    for (const [lane, count, ranges] of lanes) {
      out.varint(lane).varint(count);
      if (lane & 1) putPairs(out, count, ranges);
      else if (ranges.length) throw new RangeError("only a lane without order has numbers finished beyond a gap");
    }
    return out.take();
  },
  read(data) {
    const numbers = new LaneNumbers(data);
    /** @type {[number, number, Ranges][]} */
    const lanes = [];
    while (!numbers.done) {
      const [lane, count] = [numbers.lane(), numbers.take()];
      lanes.push([lane, count, lane & 1 ? numbers.ranges(count) : []]);
    }
    return lanes;
  },
};

/** @type {import("./fields.js").Kind} The ids of lanes. */
export const LANE_IDS = {
  write(/** @type {number[]} */ lanes) {
    const out = new Writer();
    for (const lane of lanes) out.varint(lane);
    return out.take();
  },
  read(data) {
    const numbers = new LaneNumbers(data);
    /** @type {number[]} */
    const lanes = [];
    while (!numbers.done) lanes.push(numbers.lane());
    return lanes;
  },
};
