/**
 * Decides whether the numbering continues: what the device concludes from the WELCOME to its HELLO.
 */

import { outOfOrder } from "./errors.js";
import { ack } from "./wire/frames.js";

/**
 * @typedef {import("./wire/frames.js").Hello} Hello
 * @typedef {import("./wire/frames.js").Welcome} Welcome
 * @typedef {{incarnation?: Uint8Array | null, epoch?: number | null}} Numbering
 *
 * @typedef {{kind: "continue", ack: import("./wire/frames.js").Ack, closed: number}} Continue
 *   Accept `ack`, send the rest again, and wait for no number below `closed`.
 * @typedef {{kind: "start over", dropBelow: number}} StartOver
 *   Forget all counts and number the outbox from 0, without what the gateway holds already.
 * @typedef {{kind: "redial", forget: boolean}} Redial
 *   Close this channel and dial again, claiming another epoch, or (`forget`) none.
 */

/** @param {Numbering} one @param {Numbering} other */
export function sameNumbering(one, other) {
  const [ours, theirs] = [one.incarnation ?? null, other.incarnation ?? null];
  const same = ours && theirs ? ours.every((byte, index) => byte === theirs[index]) : ours === theirs;
  return same && (one.epoch ?? null) === (other.epoch ?? null);
}

/** @param {Numbering & {assigned: number}} session the present numbering
 * @param {Hello} hello @param {Welcome} welcome @returns {Continue | StartOver | Redial} */
export function accept(session, hello, welcome) {
  if (Boolean(welcome.resumed) !== sameNumbering(hello, welcome)) {
    throw outOfOrder("a WELCOME resumes an epoch that was not claimed, or starts one again", {
      claimed: hello.epoch,
      epoch: welcome.epoch,
    });
  }
  if (!sameNumbering(hello, session)) return { kind: "redial", forget: false };
  const received = welcome.received ?? 0;
  const individual = welcome.individual ?? [];
  if (welcome.resumed) {
    const highest = individual.at(-1)?.[1] ?? received;
    // The gateway has numbers that we do not remember: it would take new messages for duplicates.
    if (highest > session.assigned) return { kind: "redial", forget: true };
    return { kind: "continue", ack: ack(received, received, individual), closed: welcome.closed ?? 0 };
  }
  const superseded = welcome.superseded ?? 0;
  // A count beyond what we ever assigned belongs to another life of this device.
  return { kind: "start over", dropBelow: superseded <= session.assigned ? superseded : 0 };
}
