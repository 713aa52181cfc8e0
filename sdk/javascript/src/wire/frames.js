/**
 * The frames of the hop protocol as objects, with absolute numbers, whatever shorthand the wire
 * uses. docs/hop-protocol.md describes the bytes.
 */

export const VERSION = 1;
export const DEFAULT_CONTENT_TYPE = "text/plain; charset=utf-8";
export const ERROR_TYPE = "application/vnd.lasthop.error+json";
export const DEFAULT_PRIORITY = 4;
export const DEFAULT_MAX_FRAME = 2 ** 20 + 2 ** 10;
export const MAX_RANGES = 256;
/** The most lanes that may be open in one direction, beside lane 0. */
export const MAX_LANES = 64;
export const MAX_LIST = 64;
export const MAX_TOPIC = 512;

/** @type {Readonly<Credit>} The window of a peer that names none. */
export const DEFAULT_WINDOW = Object.freeze({ messages: 64, bytes: 2 ** 20 });

export const Feature = Object.freeze({ BUNDLE: 1, TIME: 2, CHECKSUMS: 32, LANES: 64 });

export const Operation = Object.freeze({
  DATA: 0,
  SUBSCRIBE: 1,
  UNSUBSCRIBE: 2,
  CONTEXT: 3,
  REPLY: 4,
  READ: 5,
});

export const Reliability = Object.freeze({
  BEST_EFFORT: 0,
  AT_LEAST_ONCE_DELIVERY: 1,
  AT_LEAST_ONCE_PROCESSING: 2,
  EXACTLY_ONCE: 3,
});

export const Handling = Object.freeze({ FOREGROUND: 0, NOTIFY: 1, BACKGROUND: 2, SILENT: 3 });

export const CloseCode = Object.freeze({
  BYE: 0,
  MALFORMED: 1,
  TOO_LARGE: 2,
  UNSUPPORTED: 3,
  UNAUTHORIZED: 4,
  UNKNOWN_DEVICE: 5,
  REPLACED: 6,
  TIMEOUT: 7,
  OVERLOADED: 8,
  SHUTTING_DOWN: 9,
  CREDIT_EXCEEDED: 10,
  OUT_OF_ORDER: 11,
  LINK_CLOSED: 12,
  MOVED: 13,
});

/**
 * @typedef {[number, number][]} Ranges Half-open ranges, ascending, with gaps between them.
 * @typedef {{messages: number, bytes: number}} Credit
 *
 * @typedef {import("./fields.js").Headers} Headers
 *
 * @typedef {object} MessageFrame
 * @property {"message"} type
 * @property {number | null} seq Null: best effort, not numbered, not acknowledged.
 * @property {bigint | null} key
 * @property {string | null} topic
 * @property {Headers | null} headers
 * @property {Uint8Array} body
 * @property {number} [lane] The lane, unless it is lane 0.
 *
 * @typedef {object} LaneClaim What a receiver has of one lane.
 * @property {number} lane
 * @property {number} [received]
 * @property {number} [delivered]
 * @property {Ranges} [individual]
 * @property {Ranges} [finished] Of a lane without order: delivered beyond the delivered count.
 *
 * @typedef {object} LaneClaims What a receiver knows of the peer's lanes beside lane 0.
 * @property {number} seen One more than the largest number of a lane that it knows, closed ones included.
 * @property {LaneClaim[]} [lanes] Every lane with a number below `seen` that is not closed.
 *
 * @typedef {object} Hello
 * @property {"hello"} type
 * @property {string} app
 * @property {string} device
 * @property {string} [token]
 * @property {number} [features]
 * @property {Uint8Array} [incarnation]
 * @property {number} [epoch]
 * @property {number} [received]
 * @property {number} [delivered]
 * @property {Ranges} [individual]
 * @property {Ranges} [dropped]
 * @property {string[]} [accept]
 * @property {number} [time]
 * @property {Credit} [window]
 * @property {number} [preserve]
 * @property {number} [maxFrame]
 * @property {string} [link]
 * @property {string} [network]
 * @property {number} [heartbeat]
 * @property {number} [assigned]
 * @property {number} [storage]
 * @property {boolean} [join]
 * @property {boolean} [probe]
 * @property {LaneClaims} [lanes] What the device has of the gateway's lanes.
 * @property {[number, Ranges][]} [laneDropped]
 * @property {number[]} [sending] The lanes that the device has open.
 * @property {number} [lowest]
 * @property {number} [highest]
 *
 * @typedef {object} Welcome
 * @property {"welcome"} type
 * @property {Uint8Array} incarnation
 * @property {number} epoch
 * @property {boolean} [resumed]
 * @property {number} [superseded]
 * @property {number} [received]
 * @property {Ranges} [individual]
 * @property {number} [closed]
 * @property {number} [features]
 * @property {string[]} [accept]
 * @property {number} [time]
 * @property {number} [peerTime]
 * @property {Credit} [window]
 * @property {number} [preserve]
 * @property {number} [maxFrame]
 * @property {number} [heartbeat]
 * @property {number} [found]
 * @property {boolean} [joined]
 * @property {LaneClaims} [lanes] What the gateway has of the device's lanes.
 * @property {[number, number][]} [laneClosed]
 * @property {number[]} [sending] The lanes that the gateway has open.
 * @property {[number, number, Ranges][]} [laneSuperseded]
 * @property {number} [version]
 *
 * @typedef {{type: "close", code: number, retryAfterMs: number, reason: string}} Close
 * @typedef {{type: "ack", received: number, delivered: number, individual: Ranges, finished?: Ranges}} Ack
 * @typedef {{type: "skip", first: number, count: number}} Skip
 * @typedef {{type: "dropped", ranges: Ranges}} Dropped
 * @typedef {{type: "credit", messages: number, bytes: number}} CreditFrame
 * @typedef {{type: "ping"}} Ping
 * @typedef {{type: "pong"}} Pong
 * @typedef {{type: "time", own: number, peer: number}} Time
 * @typedef {{type: "wanted", links: string[]}} Wanted
 * @typedef {{type: "last", number: number}} Last The number that closes a lane.
 * @typedef {{type: "lane", lane: number, frame: Ack | Skip | CreditFrame | Dropped | Last}} LaneFrame
 *   A frame about the numbers of a lane other than lane 0.
 * @typedef {{type: "ways", ways: [string, string][]}} OtherWays Links and URLs.
 * @typedef {MessageFrame | LaneFrame | Hello | Welcome | Close | Ack | Skip | Dropped | CreditFrame | Ping | Pong | Time | Wanted | OtherWays} Frame
 */

/** @param {number} code @param {string} reason @param {number} [retryAfterMs] @returns {Close} */
export const close = (code, reason, retryAfterMs = 0) => ({ type: "close", code, retryAfterMs, reason });

/** @param {number} received @param {number} delivered @param {Ranges} [individual] @returns {Ack} */
export const ack = (received, delivered, individual = []) => ({
  type: "ack",
  received,
  delivered,
  individual,
});
