/** Decides, when a channel has ended, whether to dial again and when. */

import { LasthopError } from "./errors.js";
import { CloseCode } from "./wire/frames.js";

/** @typedef {import("./wire/frames.js").Close} Close */

/**
 * @type {Map<number, string>} Codes of a CLOSE after which the same HELLO would be refused again.
 */
const FINAL = new Map([
  [CloseCode.UNSUPPORTED, "unsupported_frame"],
  [CloseCode.UNAUTHORIZED, "unauthorized"],
  [CloseCode.UNKNOWN_DEVICE, "not_found"],
  [CloseCode.REPLACED, "replaced"],
]);

/**
 * Return the error that ends the device's attempts, or null to dial again.
 * @param {Close | null} close the last CLOSE of the gateway, if there was one
 * @param {boolean} welcomed whether the gateway had welcomed the device before
 */
export function verdict(close, welcomed) {
  // A gateway that accepted us speaks our version: what it cannot read was damaged on the way.
  if (welcomed && close?.code === CloseCode.UNSUPPORTED) return null;
  const code = close && FINAL.get(close.code);
  return code ? new LasthopError(code, close.reason || "no reason given") : null;
}

/**
 * How long to wait before the next attempt: twice as long each time, at random within that, so that
 * devices that lost the same gateway do not come back at the same moment.
 */
export class Backoff {
  /** @param {{first?: number, longest?: number, random?: () => number}} options milliseconds */
  constructor({ first = 500, longest = 60_000, random = Math.random } = {}) {
    this._first = first;
    this._longest = longest;
    this._random = random;
    this._attempts = 0;
  }

  succeeded() {
    this._attempts = 0;
  }

  /**
   * Return the milliseconds to wait now; at least what the gateway asked for.
   * @param {Close | null} close
   * @param {number} [longest] a lower limit for this time
   */
  delay(close, longest = Infinity) {
    const span = Math.min(longest, this._longest, this._first * 2 ** Math.min(this._attempts, 30));
    this._attempts += 1;
    return (close?.retryAfterMs ?? 0) + span * (0.5 + this._random() / 2);
  }
}
