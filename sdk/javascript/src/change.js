/**
 * What a session wants made durable, and what it gets back in its next life. A change is one commit
 * of the inbox: all of it or nothing.
 *
 * @typedef {import("./wire/frames.js").Ranges} Ranges
 * @typedef {import("./wire/frames.js").MessageFrame} MessageFrame
 *
 * @typedef {object} State The session in numbers.
 * @property {Uint8Array | null} incarnation
 * @property {number | null} epoch
 * @property {number} base The position of number 0 of this epoch.
 * @property {number} received
 * @property {number} delivered
 * @property {Ranges} dropped Let go as too late, as far as the gateway may not know of it.
 * @property {Ranges} skipped Numbers above `received` that the gateway has closed.
 * @property {number} offered Messages at positions below may have been seen by the application.
 * @property {number} assigned How many numbers were given out towards the gateway.
 * @property {number} accepted How many of them the gateway is known to have.
 * @property {bigint} lastKey
 * @property {number} generation Of the memory of keys.
 *
 * @typedef {object} InboxRow A message that the application has not dealt with.
 * @property {number} position
 * @property {number | null} number
 * @property {MessageFrame} frame
 * @property {string} defaultType
 *
 * @typedef {object} OutboxRow A message that the gateway may not have.
 * @property {string} id Of its own key.
 * @property {number} number
 * @property {MessageFrame} frame
 *
 * @typedef {object} Change One commit, to be carried out in the order of its fields.
 * @property {number} n
 * @property {State} state
 * @property {boolean} detached A new epoch began: no stored message has a number any more.
 * @property {InboxRow[]} stored
 * @property {[position: number, number: number][]} adopted Known messages under their new numbers.
 * @property {number[]} removed Positions of messages that the application has had, or never will.
 * @property {string[]} keys Ids of what it has had, remembered with the state's generation; those of
 *   generations before the last one may be forgotten.
 * @property {OutboxRow[]} queued
 * @property {[id: string, number: number][]} renumbered
 * @property {string[]} taken Ids of outgoing messages that need not be kept.
 *
 * @typedef {object} Held What an inbox has kept; rows in ascending order.
 * @property {State} state
 * @property {InboxRow[]} inbox
 * @property {OutboxRow[]} outbox
 * @property {string[]} oldKeys Of the generation before the last.
 * @property {string[]} youngKeys
 */

/** @returns {State} */
export const emptyState = () => ({
  incarnation: null,
  epoch: null,
  base: 0,
  received: 0,
  delivered: 0,
  dropped: [],
  skipped: [],
  offered: 0,
  assigned: 0,
  accepted: 0,
  lastKey: 0n,
  generation: 0,
});

/** @returns {Held} */
export const nothingHeld = () => ({
  state: emptyState(),
  inbox: [],
  outbox: [],
  oldKeys: [],
  youngKeys: [],
});
