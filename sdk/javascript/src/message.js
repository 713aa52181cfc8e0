/** A message as the application sees it, its key, and what the gateway answers to one it refuses. */

import { decodeText } from "./wire/bytes.js";
import { DEFAULT_PRIORITY, ERROR_TYPE, Handling, Reliability } from "./wire/frames.js";
import { COUNTER_MASK, TIME_SHIFT } from "./wire/layout.js";

/** Keys count milliseconds from 2025-01-01T00:00:00Z. */
const EPOCH = 1_735_689_600_000;

/**
 * When a message with this key was accepted, in milliseconds since 1970.
 * @param {bigint} key
 */
export const keyTime = (key) => Number(key >> TIME_SHIFT) + EPOCH;

/**
 * The key in sixteen digits.
 * @param {bigint} key
 */
export const idOf = (key) => key.toString(16).padStart(16, "0");

/** The next key of this device: later than the last one, whatever the clock says.
 * @param {bigint} last @param {number} now milliseconds */
export function nextKey(last, now) {
  const fresh = BigInt(Math.max(0, Math.floor(now) - EPOCH)) << TIME_SHIFT;
  if (fresh > last) return fresh;
  const following = last + 1n;
  // When all counters of a millisecond are used, the next one is borrowed; our node is always 0.
  return (following & COUNTER_MASK) === 0n ? ((last >> TIME_SHIFT) + 1n) << TIME_SHIFT : following;
}

/** Of a best-effort message, which has no place in the inbox. */
export const NO_POSITION = -1;

/**
 * @typedef {import("./wire/frames.js").MessageFrame} MessageFrame
 * @typedef {{code: string, detail: string}} Refusal Why the gateway refused a message.
 */

/** One message for this device. */
export class Message {
  /**
   * @param {MessageFrame} frame
   * @param {string} defaultType the content type that goes without saying
   * @param {number} position its place in the inbox, which only grows, whatever the numbering
   * @param {number | null} number its number in the epoch that holds
   */
  constructor(frame, defaultType, position, number) {
    this.frame = frame;
    this.defaultType = defaultType;
    this.position = position;
    this.number = number;
    const headers = frame.headers;
    /** The application may have seen it before. */
    this.redelivered = headers?.redelivered ?? false;
    /** @type {number | null} Milliseconds since 1970, after which nobody shall have it. */
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

  /** The time-ordered number that identifies it; 0n when the gateway gave none. */
  get key() {
    return this.frame.key ?? 0n;
  }

  /** The short form of its id. */
  get id() {
    return idOf(this.key);
  }

  /** When the gateway accepted it. */
  get publishedAt() {
    return new Date(keyTime(this.key));
  }

  get topic() {
    return this.frame.topic;
  }

  get body() {
    return this.frame.body;
  }

  /** The content as text; throws when it is none. */
  get text() {
    return decodeText(this.frame.body);
  }

  /** The content as JSON; throws when it is none. */
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

  /** The device that sent it; null when it came from a publisher. */
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

  /** Whether somebody waits for an answer. */
  get wantsReply() {
    return this.headers.replyWithin !== undefined;
  }

  /** Until when an answer is of use, in milliseconds since 1970. */
  get replyBefore() {
    const within = this.headers.replyWithin;
    return within === undefined ? null : keyTime(this.key) + within;
  }

  /**
   * The sender's own headers.
   * @returns {Record<string, string>}
   */
  get extra() {
    return Object.fromEntries(this.headers.extra ?? []);
  }
}

/** What the gateway says against the message that this one answers, if it is such an answer.
 * @param {Message} message @returns {Refusal | null} */
export function refusalIn(message) {
  if (message.headers.contentType !== ERROR_TYPE || message.inReplyTo === null) return null;
  try {
    const { code, detail } = message.json();
    if (typeof code === "string" && typeof detail === "string") return { code, detail };
  } catch {
    // Said below.
  }
  return { code: "unknown", detail: "the gateway gave a reason that cannot be read" };
}
