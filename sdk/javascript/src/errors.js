/**
 * The errors of this SDK, each with a stable `code` for programs and a sentence for people. The
 * codes are those of the gateway and of the Python SDK.
 */

/** Base of all errors that this SDK raises on purpose. */
export class LasthopError extends Error {
  /**
   * @param {string} code
   * @param {string} detail
   * @param {Record<string, unknown>} [fields]
   */
  constructor(code, detail, fields = {}) {
    const about = Object.entries(fields).map(([name, value]) => `${name}=${String(value)}`);
    super(about.length ? `${detail} (${about.join(", ")})` : detail);
    this.name = "LasthopError";
    this.code = code;
    this.detail = detail;
  }
}

/** The other end of a channel broke the protocol; `closeCode` is sent in the CLOSE. */
export class HopError extends LasthopError {
  /**
   * @param {string} code
   * @param {number} closeCode
   * @param {string} detail
   * @param {Record<string, unknown>} [fields]
   */
  constructor(code, closeCode, detail, fields = {}) {
    super(code, detail, fields);
    this.name = "HopError";
    this.closeCode = closeCode;
  }
}

/**
 * The gateway received a message and will not act on it; `reason` is the stable code of the reason.
 */
export class MessageRefused extends LasthopError {
  /**
   * @param {import("./message.js").Refusal} refusal
   * @param {string} id
   */
  constructor(refusal, id) {
    super("message_refused", refusal.detail, { reason: refusal.code, id });
    this.name = "MessageRefused";
    this.reason = refusal.code;
  }
}

/** @param {string} detail @param {Record<string, unknown>} [fields] */
export const malformed = (detail, fields) => new HopError("malformed_frame", 1, detail, fields);

/** @param {string} detail @param {Record<string, unknown>} [fields] */
export const damaged = (detail, fields) => new HopError("damaged_write", 1, detail, fields);

/** @param {string} detail @param {Record<string, unknown>} [fields] */
export const frameTooLarge = (detail, fields) => new HopError("frame_too_large", 2, detail, fields);

/** @param {string} detail @param {Record<string, unknown>} [fields] */
export const unsupported = (detail, fields) => new HopError("unsupported_frame", 3, detail, fields);

/** @param {string} detail @param {Record<string, unknown>} [fields] */
export const creditExceeded = (detail, fields) => new HopError("credit_exceeded", 10, detail, fields);

/** @param {string} detail @param {Record<string, unknown>} [fields] */
export const outOfOrder = (detail, fields) => new HopError("out_of_order", 11, detail, fields);
