/**
 * The changes that a session makes durable, and what it gets back when it is opened again. A change
 * is one commit of the inbox: all of it or nothing.
 *
 * @typedef {import("./wire/frames.js").Ranges} Ranges
 * @typedef {import("./wire/frames.js").MessageFrame} MessageFrame
 *
 * @typedef {object} State The counts of a session.
 * @property {Uint8Array | null} incarnation
 * @property {number | null} epoch
 * @property {number} base The position of number 0 of this epoch.
 * @property {number} received
 * @property {number} delivered
 * @property {Ranges} dropped Numbers dropped as too late that the gateway may not know of.
 * @property {Ranges} skipped Numbers above `received` that the gateway has closed.
 * @property {number} offered Messages at positions below may have been seen by the application.
 * @property {number} assigned How many numbers our messages to the gateway have used.
 * @property {number} accepted How many of them the gateway is known to have.
 * @property {bigint} lastKey
 * @property {number} generation The present generation of the remembered keys.
 *
 * @typedef {object} InboxRow A message that the application is not done with.
 * @property {number} position
 * @property {number | null} number
 * @property {MessageFrame} frame
 * @property {string} defaultType
 *
 * @typedef {object} OutboxRow A message that the gateway may not have.
 * @property {string} id The id of the message's own key.
 * @property {number} number
 * @property {MessageFrame} frame
 *
 * @typedef {object} Change One commit, to be carried out in the order of its fields.
 * @property {number} n
 * @property {State} state
 * @property {boolean} detached Whether a new epoch began: stored messages lose their numbers.
 * @property {InboxRow[]} stored
 * @property {[position: number, number: number][]} adopted New numbers of stored messages.
 * @property {number[]} removed Positions of messages that are finished or dropped.
 * @property {string[]} keys Ids of messages that the application is done with, remembered with the
 *   state's generation; those of generations before the last one may be forgotten.
 * @property {OutboxRow[]} queued
 * @property {[id: string, number: number][]} renumbered
 * @property {string[]} taken Ids of our messages that the gateway has, which need not be kept.
 *
 * @typedef {object} Held The contents of an inbox; rows in ascending order.
 * @property {State} state
 * @property {InboxRow[]} inbox
 * @property {OutboxRow[]} outbox
 * @property {string[]} oldKeys Ids of the generation before the last.
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
