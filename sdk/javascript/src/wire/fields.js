/**
 * Tagged fields: the open-ended part of HELLO, WELCOME and a message's headers. A field is a tag
 * byte, a length and a value; a field at its default is not sent, and unknown tags below 0x80 are
 * skipped.
 */

import { malformed, unsupported } from "../errors.js";
import { Reader, Writer, decodeText, utf8 } from "./bytes.js";
import { DEFAULT_MAX_FRAME, DEFAULT_PRIORITY, MAX_LIST, MAX_RANGES, Reliability } from "./frames.js";
import { LANES_IN_HELLO, LANES_IN_WELCOME, LANE_COUNTS, LANE_DROPPED, LANE_HELD, LANE_IDS, putRanges } from "./lanes.js";

const MIN_MAX_FRAME = 2 ** 13;

/**
 * @typedef {{write: (value: any) => Uint8Array, read: (data: Uint8Array) => any}} Kind
 * @typedef {[tag: number, name: string, kind: Kind, absent?: unknown]} Row
 * @typedef {import("./frames.js").Ranges} Ranges
 */

/**
 * Encode ranges as pairs (gap, run), the first gap counted from `received`.
 * @param {number} received @param {Ranges} ranges
 */
export function writeRanges(received, ranges) {
  const out = new Writer();
  putRanges(out, received, ranges);
  return out.take();
}

/** @param {number} received @param {number[]} numbers @returns {Ranges} */
export function absoluteRanges(received, numbers) {
  if (numbers.length % 2) throw malformed("an individual acknowledgement has a gap without a run");
  /** @type {Ranges} */
  const ranges = [];
  let at = received;
  for (let index = 0; index < numbers.length; index += 2) {
    const start = at + numbers[index];
    const stop = start + numbers[index + 1];
    if (!(at < start && start < stop && stop <= Number.MAX_SAFE_INTEGER)) {
      throw malformed("an individual acknowledgement has an empty or endless gap or run");
    }
    ranges.push([start, stop]);
    at = stop;
  }
  return ranges;
}

/**
 * Return the numbers that fill `data`, at most `most`.
 * @param {Uint8Array} data @param {number} most
 */
export function readNumbers(data, most) {
  const reader = new Reader(data);
  /** @type {number[]} */
  const numbers = [];
  while (!reader.done) {
    if (numbers.length === most) throw malformed("there are more numbers than a list may have", { most });
    numbers.push(reader.varint());
  }
  return numbers;
}

/** @param {Uint8Array} data @param {number} [most] */
export function readTexts(data, most = MAX_LIST) {
  const reader = new Reader(data);
  /** @type {string[]} */
  const texts = [];
  while (!reader.done) {
    if (texts.length === most) throw malformed("there are more texts than a list may have", { most });
    texts.push(reader.text());
  }
  return texts;
}

/** @param {string[]} texts @param {number} [most] */
export function writeTexts(texts, most = MAX_LIST) {
  if (texts.length > most) throw new RangeError(`a list may have at most ${most} texts`);
  const out = new Writer();
  for (const text of texts) out.text(text);
  return out.take();
}

/** @param {Uint8Array} data @param {(reader: Reader) => any} read */
function whole(data, read) {
  const reader = new Reader(data);
  const value = read(reader);
  if (!reader.done) throw malformed("bytes follow the number in a field");
  return value;
}

/** @param {string} name @param {number} most @returns {Kind} */
const octet = (name, most) => ({
  write(value) {
    if (!Number.isInteger(value) || value < 0 || value > most) throw new RangeError(`${name} must be 0 to ${most}, not ${value}`);
    return Uint8Array.of(value);
  },
  read(data) {
    if (data.length !== 1 || data[0] > most) throw malformed(`${name} must be one byte, 0 to ${most}`);
    return data[0];
  },
});

/** @type {Kind} */
const TEXT = { write: utf8, read: decodeText };
/** @type {Kind} */
const NUMBER = {
  write: (value) => new Writer().varint(value).take(),
  read: (data) => whole(data, (reader) => reader.varint()),
};
/** @type {Kind} */
const KEY = {
  write: (value) => new Writer().bigVarint(value).take(),
  read: (data) => whole(data, (reader) => reader.bigVarint()),
};
/** @type {Kind} */
const CREDIT = {
  write: (value) => new Writer().varint(value.messages).varint(value.bytes).take(),
  read(data) {
    const numbers = readNumbers(data, 2);
    if (numbers.length !== 2) throw malformed("a window must be a number of messages and a number of bytes");
    return { messages: numbers[0], bytes: numbers[1] };
  },
};
/** @type {Kind} */
const TEXTS = { write: writeTexts, read: (data) => readTexts(data) };
/** @type {Kind} */
const PAIRS = {
  write: (pairs) => writeTexts(pairs.flat(), 2 * MAX_LIST),
  read(data) {
    const texts = readTexts(data, 2 * MAX_LIST);
    if (texts.length % 2) throw malformed("a header has a name without a value");
    return Array.from({ length: texts.length / 2 }, (_, i) => [texts[2 * i], texts[2 * i + 1]]);
  },
};
/** @type {Kind} */
const DOUBLE = {
  write(value) {
    if (!Number.isFinite(value)) throw new RangeError("a rank must be a finite number");
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setFloat64(0, value);
    return bytes;
  },
  read(data) {
    if (data.length !== 8) throw malformed("a rank must have eight bytes");
    const value = new DataView(data.buffer, data.byteOffset, 8).getFloat64(0);
    if (!Number.isFinite(value)) throw malformed("a rank must be a finite number");
    return value;
  },
};
/** @type {Kind} */
const INCARNATION = {
  write(value) {
    if (value.length !== 8) throw new RangeError("an incarnation must have eight bytes");
    return value;
  },
  read(data) {
    if (data.length !== 8) throw malformed("an incarnation must have eight bytes");
    return data.slice();
  },
};
/** @type {Kind} */
const FLAG = {
  write: () => Uint8Array.of(1),
  read(data) {
    if (data.length !== 1 || data[0] !== 1) throw malformed("a flag must be the byte 01 or absent");
    return true;
  },
};
/** @type {Kind} */
const MARK = {
  write: () => new Uint8Array(0),
  read(data) {
    if (data.length) throw malformed("a mark must not have a value");
    return true;
  },
};
/** @type {Kind} */
const NUMBERS = {
  write: (ranges) => writeRanges(-1, ranges),
  read: (data) => absoluteRanges(-1, readNumbers(data, 2 * MAX_RANGES)),
};
/** @type {Kind} */
const FRAME_SIZE = {
  write: NUMBER.write,
  read(data) {
    const size = NUMBER.read(data);
    if (size < MIN_MAX_FRAME) throw malformed("a limit of frames is too low", { least: MIN_MAX_FRAME });
    return size;
  },
};
/** Individual acknowledgements: they depend on the received count, so the table deals with them.
 * @type {Kind} */
const GAPS = { write: () => new Uint8Array(0), read: (data) => readNumbers(data, 2 * MAX_RANGES) };

/** The fields of one kind of frame. */
class Table {
  /** @param {Row[]} rows */
  constructor(...rows) {
    this._rows = rows;
    this._byTag = new Map(rows.map((row) => [row[0], row]));
  }

  /** The properties that the table knows. */
  get names() {
    return this._rows.map((row) => row[1]);
  }

  /**
   * Encode every property that is present and not at its default, except the one named by `omit`.
   * @param {any} value @param {string} [omit]
   */
  write(value, omit = "") {
    const out = new Writer();
    for (const [tag, name, kind, absent] of this._rows) {
      const item = value[name];
      if (item === undefined || item === null || item === absent || name === omit) continue;
      if (Array.isArray(item) && !item.length) continue;
      const content = kind === GAPS ? writeRanges(value.received ?? 0, item) : kind.write(item);
      out.byte(tag).varint(content.length).put(content);
    }
    return out.take();
  }

  /** @param {Uint8Array} data @returns {Record<string, any>} */
  read(data) {
    /** @type {Record<string, any>} */
    const found = {};
    const seen = new Set();
    const reader = new Reader(data);
    while (!reader.done) {
      const tag = reader.byte();
      const length = reader.varint();
      if (reader.pos + length > reader.end) throw malformed("a field is longer than its frame", { tag });
      if (seen.has(tag)) throw malformed("a field comes twice", { tag });
      seen.add(tag);
      const content = reader.slice(length);
      const row = this._byTag.get(tag);
      if (row) {
        const value = row[2].read(content);
        // An empty list is not sent: whoever sends one says the same.
        if (!Array.isArray(value) || value.length) found[row[1]] = value;
      } else if (tag >= 0x80) throw unsupported("a field that must be understood has an unknown tag", { tag });
    }
    // Computed after all fields are read, because fields come in any order.
    if (found.individual) found.individual = absoluteRanges(found.received ?? 0, found.individual);
    return found;
  }
}

export const HELLO = new Table(
  [1, "app", TEXT],
  [2, "device", TEXT],
  [3, "token", TEXT],
  [4, "features", NUMBER, 0],
  [5, "incarnation", INCARNATION],
  [6, "epoch", NUMBER],
  [7, "received", NUMBER, 0],
  [8, "delivered", NUMBER, 0],
  [9, "individual", GAPS],
  [11, "accept", TEXTS],
  [12, "time", NUMBER],
  [14, "window", CREDIT],
  [15, "preserve", NUMBER],
  [16, "maxFrame", FRAME_SIZE, DEFAULT_MAX_FRAME],
  [17, "link", TEXT],
  [18, "network", TEXT],
  [19, "heartbeat", NUMBER],
  [22, "dropped", NUMBERS],
  [23, "assigned", NUMBER],
  [24, "storage", NUMBER],
  [25, "join", FLAG, false],
  [26, "lanes", LANES_IN_HELLO],
  [27, "laneDropped", LANE_DROPPED],
  [30, "sending", LANE_IDS],
  [0x81, "probe", FLAG, false],
);

export const WELCOME = new Table(
  [4, "features", NUMBER, 0],
  [5, "incarnation", INCARNATION],
  [6, "epoch", NUMBER],
  [7, "received", NUMBER, 0],
  [9, "individual", GAPS],
  [10, "closed", NUMBER, 0],
  [11, "accept", TEXTS],
  [12, "time", NUMBER],
  [13, "peerTime", NUMBER],
  [14, "window", CREDIT],
  [15, "preserve", NUMBER],
  [16, "maxFrame", FRAME_SIZE, DEFAULT_MAX_FRAME],
  [19, "heartbeat", NUMBER],
  [20, "resumed", FLAG, false],
  [21, "superseded", NUMBER],
  [25, "joined", FLAG, false],
  [26, "lanes", LANES_IN_WELCOME],
  [27, "laneClosed", LANE_COUNTS],
  [28, "found", NUMBER],
  [30, "sending", LANE_IDS],
  [31, "laneSuperseded", LANE_HELD],
);

/**
 * @typedef {object} Headers The headers of a message; an absent one is at its default.
 * @property {string} [contentType]
 * @property {number} [priority]
 * @property {number} [deliverWithin] Milliseconds after the key's time.
 * @property {bigint} [inReplyTo]
 * @property {number} [replyWithin] Milliseconds after the key's time.
 * @property {number} [operation]
 * @property {number} [handling]
 * @property {number} [reliability]
 * @property {string} [title]
 * @property {number} [rank]
 * @property {string} [source]
 * @property {string} [to]
 * @property {boolean} [redelivered]
 * @property {[string, string][]} [extra]
 * @property {string} [queue]
 * @property {bigint} [correlation]
 * @property {boolean} [keep]
 * @property {boolean} [answer] Whether this answers a request; a receiver that does not wait drops it.
 * @property {boolean} [gather]
 * @property {number} [tolerance] Milliseconds that the message may wait for a better link or moment.
 * @property {boolean} [immediate] Whether it is only for those who can be reached at once.
 */
export const HEADERS = new Table(
  [1, "contentType", TEXT],
  [2, "priority", octet("priority", 9), DEFAULT_PRIORITY],
  [3, "deliverWithin", NUMBER],
  [4, "inReplyTo", KEY],
  [5, "replyWithin", NUMBER],
  [6, "operation", octet("operation", 255), 0],
  [7, "handling", octet("handling", 3), 0],
  [8, "reliability", octet("reliability", 3), Reliability.EXACTLY_ONCE],
  [9, "title", TEXT],
  [10, "rank", DOUBLE, 0],
  [11, "source", TEXT],
  [12, "to", TEXT],
  [13, "redelivered", MARK, false],
  [14, "extra", PAIRS],
  [15, "queue", TEXT],
  [16, "correlation", KEY],
  [17, "keep", MARK, false],
  [21, "answer", MARK, false],
  [22, "gather", MARK, false],
  [26, "tolerance", NUMBER],
  [27, "immediate", MARK, false],
);
