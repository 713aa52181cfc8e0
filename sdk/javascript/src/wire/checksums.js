/**
 * Checksums over what is written to a link without TLS: CRC-32, as zlib computes it, four bytes at the
 * end of each unit, and of HELLO and WELCOME as their last field.
 */

import { damaged } from "../errors.js";

/** Bytes of a checksum. */
const SIZE = 4;

/** Tag 29 and the length of its value. */
const FIELD = [0x1d, 0x04];

const CHANGED = "a checksum does not fit: the link has changed what was written";

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** @param {Uint8Array} data @param {number} [end] @returns {number} */
export function crc32(data, end = data.length) {
  let value = 0xffffffff;
  for (let at = 0; at < end; at += 1) value = (value >>> 8) ^ TABLE[(value ^ data[at]) & 0xff];
  return (value ^ 0xffffffff) >>> 0;
}

/** The data with something between it and its checksum.
 * @param {Uint8Array} data @param {number[]} [between] @returns {Uint8Array} */
export function withChecksum(data, between = []) {
  const out = new Uint8Array(data.length + between.length + SIZE);
  out.set(data);
  out.set(between, data.length);
  new DataView(out.buffer).setUint32(out.length - SIZE, crc32(data));
  return out;
}

/** Whether the last bytes are the checksum of the first.
 * @param {Uint8Array} data @param {number} end where the first bytes end */
function fits(data, end) {
  const found = new DataView(data.buffer, data.byteOffset + data.length - SIZE, SIZE).getUint32(0);
  return found === crc32(data, end);
}

/** A unit without its checksum.
 * @param {Uint8Array} unit @returns {Uint8Array} */
export function checkUnit(unit) {
  const end = unit.length - SIZE;
  if (end < 0 || !fits(unit, end)) throw damaged(CHANGED);
  return unit.subarray(0, end);
}

/** The payload of a HELLO or WELCOME with its checksum as one more field.
 * @param {Uint8Array} payload @returns {Uint8Array} */
export const sealed = (payload) => withChecksum(payload, FIELD);

/** Checks the payload of a HELLO or WELCOME against its last field.
 * @param {Uint8Array} payload @returns {boolean} whether there is a checksum */
export function checkSeal(payload) {
  const end = payload.length - SIZE - FIELD.length;
  if (end < 0 || payload[end] !== FIELD[0] || payload[end + 1] !== FIELD[1]) return false;
  if (!fits(payload, end)) throw damaged(CHANGED);
  return true;
}

/** Whoever has the feature adds the checksum: if there is none, its tag was damaged.
 * @param {boolean} offered @param {boolean} checked */
export function insistOnSeal(offered, checked) {
  if (offered && !checked) throw damaged(CHANGED);
}
