/** Makes messages from what the application asks for: the one place that fills in headers. */

import { LasthopError } from "./errors.js";
import { utf8 } from "./wire/bytes.js";
import { DEFAULT_CONTENT_TYPE, Operation } from "./wire/frames.js";

const JSON_TYPE = "application/json";
/** The longest delay tolerance in seconds: the gateway cannot foresee links further ahead. */
const MAX_DELAY = 31 * 86_400;
const ADDRESSABLE = ["device", "user", "topic", "service", "group", "queue", "app"];

/**
 * @typedef {import("./wire/frames.js").Headers} Headers
 *
 * @typedef {object} Draft A message that is ready to be queued.
 * @property {Headers} headers
 * @property {Uint8Array} [body]
 * @property {string} [topic]
 * @property {boolean} [expects] Whether a caller awaits the answer.
 *
 * @typedef {object} Options The options of any message.
 * @property {string} [contentType] Default: plain text for a string, unknown bytes otherwise.
 * @property {string} [title]
 * @property {number} [priority] 0 to 9.
 * @property {number} [rank]
 * @property {number} [expiresIn] Seconds after which the message expires.
 * @property {number} [delayTolerance] Seconds that the message may wait for a better link or moment.
 * @property {boolean} [immediate] Only for those whom the gateway can reach when it gets the message.
 * @property {number} [reliability]
 * @property {number} [handling]
 * @property {string} [queue]
 * @property {Record<string, string>} [headers]
 *
 * @typedef {string | Uint8Array | ArrayBuffer} Body
 */

/** @param {Body} body */
function bytesOf(body) {
  if (typeof body === "string") return utf8(body);
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  if (body instanceof Uint8Array) return body;
  throw new TypeError("a body is a string, a Uint8Array or an ArrayBuffer");
}

/** @param {string} detail @param {Record<string, unknown>} [fields] */
const invalid = (detail, fields) => new LasthopError("invalid_request", detail, fields);

/** @param {Body} body @param {Options} options @returns {Headers} */
function headersOf(body, options) {
  const { priority, rank, expiresIn, delayTolerance } = options;
  if (priority !== undefined && !(Number.isInteger(priority) && priority >= 0 && priority <= 9)) {
    throw invalid("a priority must be 0 to 9", { priority });
  }
  if (rank !== undefined && !Number.isFinite(rank)) throw invalid("a rank must be a finite number", { rank });
  if (expiresIn !== undefined && !(expiresIn >= 0)) throw invalid("expiresIn is a number of seconds", { expiresIn });
  if (delayTolerance !== undefined && !(delayTolerance >= 0 && delayTolerance <= MAX_DELAY)) {
    throw invalid("a delayTolerance is 0 to 31 days, in seconds", { delayTolerance });
  }
  return {
    contentType: options.contentType ?? (typeof body === "string" ? DEFAULT_CONTENT_TYPE : "application/octet-stream"),
    priority,
    rank,
    deliverWithin: expiresIn === undefined ? undefined : Math.ceil(expiresIn * 1000),
    tolerance: delayTolerance === undefined ? undefined : Math.ceil(delayTolerance * 1000),
    immediate: options.immediate,
    reliability: options.reliability,
    handling: options.handling,
    title: options.title,
    queue: options.queue,
    extra: options.headers && Object.entries(options.headers),
  };
}

/**
 * Compose a message for `device:NAME`, `user:`, `topic:`, `service:`, `group:`, `queue:NAME`, or
 * `app:`.
 * @param {string} target @param {Body} body @param {Options} options @param {number} [replyWithin]
 * milliseconds
 * @returns {Draft}
 */
export function message(target, body, options, replyWithin) {
  const [kind, name] = target.split(/:(.*)/s);
  if (name === undefined || !ADDRESSABLE.includes(kind)) {
    throw invalid("a target is device:NAME, user:, topic:, service:, group:, queue:NAME, or app:", { target });
  }
  const topic = kind === "topic" ? name : undefined;
  const headers = { ...headersOf(body, options), to: topic ? undefined : target, replyWithin };
  return { headers, body: bytesOf(body), topic, expects: replyWithin !== undefined };
}

/**
 * Compose the answer to a message, for its sender.
 * @param {import("./message.js").Message} to @param {Body} body @param {Options} options
 * @param {number} now @returns {Draft}
 */
export function reply(to, body, options, now) {
  if (to.replyBefore !== null && now >= to.replyBefore) {
    throw new LasthopError("expired", "the sender no longer waits for an answer", { id: to.id });
  }
  if (to.frame.key === null) throw invalid("a message without a key cannot be answered");
  const headers = {
    ...headersOf(body, options),
    operation: Operation.REPLY,
    inReplyTo: to.frame.key,
    to: to.source ?? undefined,
    correlation: to.headers.correlation,
  };
  return { headers, body: bytesOf(body) };
}

/**
 * Compose a request to subscribe to a topic, or to end the subscription.
 * @param {string} topic @param {boolean} on @returns {Draft}
 */
export function subscription(topic, on) {
  if (!topic) throw invalid("a topic has a name");
  return { headers: { operation: on ? Operation.SUBSCRIBE : Operation.UNSUBSCRIBE }, topic };
}

/**
 * Compose a report of the device about itself: battery, place, links.
 * @param {object} report @returns {Draft}
 */
export function context(report) {
  const headers = { operation: Operation.CONTEXT, contentType: JSON_TYPE };
  return { headers, body: utf8(JSON.stringify(report)) };
}

/**
 * Compose the report that the user has read a message.
 * @param {import("./message.js").Message} message @returns {Draft}
 */
export function read(message) {
  const headers = { operation: Operation.READ, contentType: JSON_TYPE };
  // Written by hand, because a key has more digits than JSON.stringify keeps.
  const body = `{"count":1,"message":${message.key}}`;
  return { headers, body: utf8(body), topic: message.topic ?? undefined };
}
