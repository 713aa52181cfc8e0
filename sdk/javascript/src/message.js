/** A message as the application sees it, its key, and the gateway's refusal of a message. */

import { decodeText } from "./wire/bytes.js";
import { DEFAULT_PRIORITY, ERROR_TYPE, Handling, Reliability } from "./wire/frames.js";
import { COUNTER_MASK, TIME_SHIFT } from "./wire/layout.js";

/** Keys count milliseconds from 2025-01-01T00:00:00Z. */
const EPOCH = 1_735_689_600_000;

/**
 * Return when the message with a key was accepted, in milliseconds since 1970.
 * @param {bigint} key
 */
export const keyTime = (key) => Number(key >> TIME_SHIFT) + EPOCH;

/**
 * Return a key in sixteen hexadecimal digits.
 * @param {bigint} key
 */
export const idOf = (key) => key.toString(16).padStart(16, "0");

/**
 * Return the next key of this device: later than the last one, whatever the clock says.
 * @param {bigint} last @param {number} now milliseconds
 */
export function nextKey(last, now) {
  const fresh = BigInt(Math.max(0, Math.floor(now) - EPOCH)) << TIME_SHIFT;
  if (fresh > last) return fresh;
  const following = last + 1n;
  // When all counters of a millisecond are used, the next one is borrowed; our node is always 0.
  return (following & COUNTER_MASK) === 0n ? ((last >> TIME_SHIFT) + 1n) << TIME_SHIFT : following;
}

/** The position of a best-effort message, which has no place in the inbox. */
export const NO_POSITION = -1;

/**
 * @typedef {import("./wire/frames.js").MessageFrame} MessageFrame
 * @typedef {{code: string, detail: string}} Refusal Why the gateway refused a message.
 */

/** One message for this device. */
export class Message {
  /**
   * @param {MessageFrame} frame
   * @param {string} defaultType the content type of a message that names none
   * @param {number} position the place in the inbox, which only grows, whatever the numbering
   * @param {number | null} number the number in the present epoch
   */
  constructor(frame, defaultType, position, number) {
    this.frame = frame;
    this.defaultType = defaultType;
    this.position = position;
    this.number = number;
    const headers = frame.headers;
    /** Whether the application may have seen the message before. */
    this.redelivered = headers?.redelivered ?? false;
    /**
     * @type {number | null} When the message expires, in milliseconds since 1970; null if never.
     */
    this.deadline =
      headers?.deliverWithin !== undefined && frame.key !== null
        ? keyTime(frame.key) + headers.deliverWithin
        : null;
    this.stored = false;
    this.offered = false;
    this.finished = false;
  }

  get headers() {
    return this.frame.headers ?? {};
  }

  /** The time-ordered number that identifies the message; 0n when the gateway gave none. */
  get key() {
    return this.frame.key ?? 0n;
  }

  /** The short form of the message's id. */
  get id() {
    return idOf(this.key);
  }

  /** When the gateway accepted the message. */
  get publishedAt() {
    return new Date(keyTime(this.key));
  }

  get topic() {
    return this.frame.topic;
  }

  get body() {
    return this.frame.body;
  }

  /** The body as text; throws when it is not text. */
  get text() {
    return decodeText(this.frame.body);
  }

  /** Return the body as JSON; throws when it is not JSON. */
  json() {
    return JSON.parse(this.text);
  }

  get contentType() {
    return this.headers.contentType ?? this.defaultType;
  }

  get title() {
    return this.headers.title ?? null;
  }

  get priority() {
    return this.headers.priority ?? DEFAULT_PRIORITY;
  }

  get rank() {
    return this.headers.rank ?? 0;
  }

  get handling() {
    return this.headers.handling ?? Handling.FOREGROUND;
  }

  get reliability() {
    return this.headers.reliability ?? Reliability.EXACTLY_ONCE;
  }

  /** The device that sent the message; null when it came from a publisher. */
  get source() {
    return this.headers.source ?? null;
  }

  get queue() {
    return this.headers.queue ?? null;
  }

  /** The key of the message that this one answers. */
  get inReplyTo() {
    return this.headers.inReplyTo ?? null;
  }

  /** Whether the sender waits for an answer. */
  get wantsReply() {
    return this.headers.replyWithin !== undefined;
  }

  /** Until when the sender waits for an answer, in milliseconds since 1970. */
  get replyBefore() {
    const within = this.headers.replyWithin;
    return within === undefined ? null : keyTime(this.key) + within;
  }

  /**
   * The headers that the sender added.
   * @returns {Record<string, string>}
   */
  get extra() {
    return Object.fromEntries(this.headers.extra ?? []);
  }
}

/**
 * Return the refusal in a message with which the gateway refuses one of ours; null if it is another
 * message.
 * @param {Message} message @returns {Refusal | null}
 */
export function refusalIn(message) {
  if (message.headers.contentType !== ERROR_TYPE || message.inReplyTo === null) return null;
  try {
    const { code, detail } = message.json();
    if (typeof code === "string" && typeof detail === "string") return { code, detail };
  } catch {
    // The error below covers it.
  }
  return { code: "unknown", detail: "the gateway gave a reason that cannot be read" };
}
