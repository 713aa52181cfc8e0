/**
 * Reads and writes bytes: varints (unsigned LEB128, at most 63 bits, shortest form only), texts and
 * slices. Counts are numbers, exact up to 2^53; keys, which need all 63 bits, are BigInts.
 */

import { malformed } from "../errors.js";

const MAX_BYTES = 9;
const MAX_BIG = (1n << 63n) - 1n;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** @param {string} text */
export const utf8 = (text) => encoder.encode(text);

/** @param {Uint8Array} bytes @returns {string} throws if the bytes are not UTF-8 */
export function decodeText(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    throw malformed("a text is not UTF-8");
  }
}

/** Reads the bytes of one frame, and never beyond its end. */
export class Reader {
  /** @param {Uint8Array} data @param {number} [pos] @param {number} [end] */
  constructor(data, pos = 0, end = data.length) {
    this.data = data;
    this.pos = pos;
    this.end = end;
  }

  get done() {
    return this.pos >= this.end;
  }

  byte() {
    if (this.pos >= this.end) throw malformed("the frame ends inside a number");
    return this.data[this.pos++];
  }

  /** Read a count: a varint that JavaScript can count with. */
  varint() {
    let byte = this.byte();
    if (byte < 0x80) return byte;
    const start = this.pos - 1;
    let value = byte & 0x7f;
    let scale = 0x80;
    while ((byte = this.byte()) >= 0x80) {
      value += (byte & 0x7f) * scale;
      scale *= 0x80;
      if (this.pos - start >= MAX_BYTES) throw malformed("a number has more than 63 bits");
    }
    if (byte === 0) throw malformed("a number is not in its shortest form");
    value += byte * scale;
    if (value > Number.MAX_SAFE_INTEGER) throw malformed("a count is beyond 53 bits");
    return value;
  }

  /** Read a key: a varint of up to 63 bits. */
  bigVarint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (shift === 7n * BigInt(MAX_BYTES)) throw malformed("a number has more than 63 bits");
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      if (byte === 0 && shift > 0n) throw malformed("a number is not in its shortest form");
      return value;
    }
  }

  /** @param {number} length */
  slice(length) {
    if (this.pos + length > this.end) throw malformed("a text is longer than its frame");
    const piece = this.data.subarray(this.pos, this.pos + length);
    this.pos += length;
    return piece;
  }

  /** Read a text with its length before it. */
  text() {
    return decodeText(this.slice(this.varint()));
  }

  rest() {
    return this.slice(this.end - this.pos);
  }
}

/** A buffer of bytes that grows as they are written. */
export class Writer {
  constructor() {
    this._bytes = new Uint8Array(64);
    this.length = 0;
  }

  /** @param {number} count */
  _room(count) {
    if (this.length + count <= this._bytes.length) return;
    const larger = new Uint8Array(Math.max(this._bytes.length * 2, this.length + count));
    larger.set(this._bytes.subarray(0, this.length));
    this._bytes = larger;
  }

  /** @param {number} byte */
  byte(byte) {
    this._room(1);
    this._bytes[this.length++] = byte;
    return this;
  }

  /** @param {Uint8Array} bytes */
  put(bytes) {
    this._room(bytes.length);
    this._bytes.set(bytes, this.length);
    this.length += bytes.length;
    return this;
  }

  /** @param {number} value */
  varint(value) {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`this is not a count: ${value}`);
    while (value >= 0x80) {
      this.byte((value % 0x80) | 0x80);
      value = Math.floor(value / 0x80);
    }
    return this.byte(value);
  }

  /** @param {bigint} value */
  bigVarint(value) {
    if (value < 0n || value > MAX_BIG) throw new RangeError(`a key must be unsigned, with at most 63 bits: ${value}`);
    while (value >= 0x80n) {
      this.byte(Number(value & 0x7fn) | 0x80);
      value >>= 7n;
    }
    return this.byte(Number(value));
  }

  /**
   * Write a text with its length before it.
   * @param {string} text
   */
  text(text) {
    const bytes = utf8(text);
    return this.varint(bytes.length).put(bytes);
  }

  /** @param {number} length */
  cut(length) {
    this.length = length;
  }

  /** Return a copy of what was written. */
  take() {
    return this._bytes.slice(0, this.length);
  }
}
