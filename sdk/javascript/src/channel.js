/**
 * One WebSocket from its handshake to its end: HELLO and WELCOME, the codec, credit, round trips
 * and the heartbeat. Frames about messages go to the channel's owner.
 */

import { HopError, malformed } from "./errors.js";
import { Heartbeat } from "./heartbeat.js";
import { Meter } from "./meter.js";
import { RoundTrip } from "./roundtrip.js";
import { checkUnit, withChecksum } from "./wire/checksums.js";
import { Decoder } from "./wire/decoder.js";
import { Encoder } from "./wire/encoder.js";
import { CloseCode, DEFAULT_CONTENT_TYPE, DEFAULT_MAX_FRAME, DEFAULT_WINDOW, Feature, close } from "./wire/frames.js";

/**
 * @typedef {import("./wire/frames.js").Frame} Frame
 * @typedef {import("./wire/frames.js").Hello} Hello
 * @typedef {import("./wire/frames.js").Welcome} Welcome
 * @typedef {import("./wire/frames.js").Close} Close
 *
 * @typedef {object} Owner
 * @property {(welcome: Welcome) => void} welcomed
 * @property {(frames: Frame[]) => void} received
 * @property {() => void} [silent] Called when the gateway has not answered in time.
 * @property {() => void} [answers] Called when it answers after all.
 * @property {(reason: string, last: Close | null) => void} ended Called once, with the
 *   last CLOSE if what the gateway sent could be understood until then.
 *
 * @typedef {object} Socket The part of a WebSocket that this SDK uses.
 * @property {string} binaryType
 * @property {number} bufferedAmount
 * @property {(data: Uint8Array) => void} send
 * @property {(code?: number, reason?: string) => void} close
 * @property {((event: any) => void) | null} onopen
 * @property {((event: any) => void) | null} onmessage
 * @property {((event: any) => void) | null} onerror
 * @property {((event: any) => void) | null} onclose
 * @typedef {{socket: Socket, received: unknown[], ended: string | null, patience?: number}} HeldSocket
 *   An open socket over which nothing was said yet, what has arrived, and how long its HELLO may remain unanswered.
 * @typedef {new (url: string, protocol: string) => Socket} SocketClass
 */

/** Milliseconds to wait for the WELCOME: the gateway may be on the far side of a satellite. */
const WAIT_FOR_WELCOME = 30_000;

/** How long a frame may remain unanswered before the channel counts as silent, in milliseconds. */
const LEAST_PATIENCE = 1_000;
const MOST_PATIENCE = 2_500;

/** Unsent bytes above which only acknowledgements are added. */
const HIGH_WATER = 256 * 1024;

/** Milliseconds that the peer may take to answer our goodbye. */
const GOODBYE = 2_000;

/** The longest that a timer is set for, in milliseconds: timers stop while a machine sleeps. */
const LONGEST_TIMER = 60_000;

export class Channel {
  /**
   * @param {SocketClass} WebSocket
   * @param {string} url
   * @param {Hello} hello
   * @param {Owner} owner
   * @param {() => number} now milliseconds since 1970
   * @param {boolean} [offered] whether to offer checksums where there is no TLS
   * @param {HeldSocket} [held] a connection that is ready; without one it is made here
   */
  constructor(WebSocket, url, hello, owner, now, offered = true, held = undefined) {
    const started = now();
    this._owner = owner;
    this._now = now;
    this._roundTrip = new RoundTrip(started);
    // TLS has better checksums of its own.
    const checksums = offered && /^ws:/i.test(url) ? Feature.CHECKSUMS : 0;
    this._hello = { ...hello, time: started, features: Feature.BUNDLE | Feature.TIME | checksums };
    this._decoder = new Decoder(hello.maxFrame ?? DEFAULT_MAX_FRAME);
    // Messages may follow the WELCOME at once, numbered from here if it resumes.
    this._decoder.begin(hello.received ?? 0, 0, 0);
    this._encoder = new Encoder();
    this._meter = new Meter(hello.window ?? DEFAULT_WINDOW, hello.received ?? 0);
    /** @type {Heartbeat | null} The heartbeat, which starts with the WELCOME. */
    this._heartbeat = null;
    this._features = 0;
    this._over = false;
    /** Whether the gateway sent something that could not be understood. */
    this.damaged = false;
    /** @type {Close | null} The last CLOSE, from either side. */
    this._last = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._timer = undefined;
    /** @type {number | null} When the oldest frame left that waits for an answer. */
    this._waiting = null;
    this._silent = false;
    this._socket = held?.socket ?? new WebSocket(url, "hop");
    this._socket.binaryType = "arraybuffer";
    this._socket.onopen = () => this._write([this._hello]);
    this._socket.onmessage = ({ data }) => this._arrived(data);
    this._socket.onerror = () => {};
    this._socket.onclose = ({ reason }) => this._end(reason || "the gateway cannot be reached");
    this._deadline = started + WAIT_FOR_WELCOME;
    this._expected = started + (held?.patience ?? WAIT_FOR_WELCOME);
    this._arm();
    if (held) queueMicrotask(() => this._takeOver(held));
  }

  /**
   * Go on with a connection that was ready before.
   * @param {HeldSocket} held
   */
  _takeOver(held) {
    if (held.ended === null) this._write([this._hello]);
    for (const data of held.received) this._arrived(data);
    if (held.ended !== null) this._end(held.ended);
  }

  /**
   * End the channel without waiting for the gateway, which does not answer.
   * @param {string} reason
   */
  drop(reason) {
    this.close(CloseCode.BYE, reason);
    this._end(reason);
  }

  /** Whether the gateway has not answered in time. */
  get silent() {
    return this._silent;
  }

  get roundTrip() {
    return this._roundTrip.smoothed;
  }

  /** Seconds of silence after which this channel is checked with a ping. */
  get heartbeat() {
    return this._heartbeat ? this._heartbeat.interval / 1000 : null;
  }

  /** Whether the gateway has sent its WELCOME. */
  get welcomed() {
    return this._heartbeat !== null;
  }

  /** Whether the channel can take more than a few bytes. */
  get room() {
    return this._socket.bufferedAmount < HIGH_WATER;
  }

  /** @param {Frame[]} frames */
  send(frames) {
    if (this._over || this._last || !frames.length) return;
    for (const frame of frames) {
      if (frame.type === "ack") this._meter.acknowledge(frame.received);
      else if (frame.type === "credit") this._meter.grant(frame);
    }
    const now = this._now();
    const bytes = frames.reduce((sum, frame) => sum + (frame.type === "message" ? frame.body.length : 8), 0);
    const time = this._features & Feature.TIME ? this._roundTrip.timeToSend(now, bytes) : null;
    this._write(time ? [...frames, time] : frames);
    this._heartbeat?.onSent(now);
    if (this._waiting === null && frames.some((frame) => frame.type === "message" && frame.seq !== null)) {
      this._waiting = now;
      this._arm();
    }
  }

  /** How long the gateway may take to answer, in milliseconds. */
  get _patience() {
    return Math.min(Math.max(4 * (this._roundTrip.smoothed ?? 0), LEAST_PATIENCE), MOST_PATIENCE);
  }

  /**
   * Send a CLOSE and close the socket.
   * @param {number} code @param {string} reason
   */
  close(code, reason) {
    if (this._over || this._last) return;
    this._last = close(code, reason);
    try {
      this._write([this._last]);
    } catch {
      // The socket is not open yet, or already closed.
    }
    this._socket.close(1000);
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._end(reason), GOODBYE);
  }

  /**
   * Close the channel because the gateway broke the protocol.
   * @param {HopError} error
   */
  fail(error) {
    if (this._over || this._last) return;
    this.damaged = true;
    this.close(error.closeCode, error.message);
  }

  /** Whether both sides add checksums to what they write. */
  get _checked() {
    return Boolean(this._features & this._hello.features & Feature.CHECKSUMS);
  }

  /** @param {Frame[]} frames */
  _write(frames) {
    for (const unit of this._encoder.units(frames)) this._socket.send(this._checked ? withChecksum(unit) : unit);
  }

  /** @param {unknown} data */
  _arrived(data) {
    if (this._over || this._last) return;
    this._waiting = null;
    if (this._silent) {
      this._silent = false;
      this._owner.answers?.();
    }
    try {
      if (!(data instanceof ArrayBuffer)) throw malformed("the hop protocol speaks in binary messages");
      const unit = new Uint8Array(data);
      this._proceed(this._decoder.decode(this._checked ? checkUnit(unit) : unit));
    } catch (error) {
      if (!(error instanceof HopError)) throw error;
      this.fail(error);
    }
  }

  /** @param {Frame[]} frames */
  _proceed(frames) {
    const now = this._now();
    const waited = this._heartbeat?.onReceived(now) ?? null;
    /** @type {Frame[]} */
    const forOwner = [];
    for (const frame of frames) {
      if (frame.type === "close") {
        this._last = frame;
        break;
      }
      if (!this._heartbeat) {
        if (frame.type !== "welcome") throw malformed("the first frame is not a WELCOME");
        this._welcomed(frame, now);
      } else this._take(frame, forOwner, now, waited);
    }
    if (forOwner.length) this._owner.received(forOwner);
    if (this._last) this._end(this._last.reason || "the gateway hung up");
    else this._arm();
  }

  /** @param {Frame} frame @param {Frame[]} forOwner @param {number} now @param {number | null} waited */
  _take(frame, forOwner, now, waited) {
    switch (frame.type) {
      case "message":
        if (frame.seq !== null) this._meter.take(frame.seq, frame.body.length);
        forOwner.push(frame);
        break;
      case "ack":
      case "skip":
      case "credit":
        forOwner.push(frame);
        break;
      case "ping":
        this.send([{ type: "pong" }]);
        break;
      case "pong":
        if (waited !== null) this._roundTrip.sample(waited);
        break;
      case "time":
        this._roundTrip.onTime(frame, now);
        break;
      case "hello":
      case "welcome":
        throw malformed("a handshake frame came a second time");
      default:
        break; // Wanted links and dropped numbers do not concern this SDK.
    }
  }

  /** @param {Welcome} welcome @param {number} now */
  _welcomed(welcome, now) {
    const { received = 0, delivered = 0 } = welcome.resumed ? this._hello : {};
    this._encoder.begin(welcome.received ?? 0, received, delivered);
    this._encoder.maxFrame = welcome.maxFrame ?? DEFAULT_MAX_FRAME;
    this._encoder.preferred = welcome.accept?.[0] ?? DEFAULT_CONTENT_TYPE;
    this._features = welcome.features ?? 0;
    this._encoder.bundled = Boolean(this._features & Feature.BUNDLE);
    this._meter = new Meter(this._hello.window ?? DEFAULT_WINDOW, received);
    if (welcome.time !== undefined) {
      this._roundTrip.onOwnTime(welcome.time, now);
      this._roundTrip.owe();
    }
    if (welcome.peerTime !== undefined) this._roundTrip.onPeerTime(welcome.peerTime, now);
    this._heartbeat = new Heartbeat(now, welcome.heartbeat);
    this._owner.welcomed(welcome);
  }

  _arm() {
    if (this._over || this._last) return;
    clearTimeout(this._timer);
    let due = this._heartbeat ? this._heartbeat.nextDue() : this._deadline;
    if (!this._heartbeat && !this._silent) due = Math.min(due, this._expected);
    if (this._waiting !== null && !this._silent) due = Math.min(due, this._waiting + this._patience);
    const wait = Math.min(Math.max(0, due - this._now()), LONGEST_TIMER);
    this._timer = setTimeout(() => this._tick(), wait);
  }

  _tick() {
    const now = this._now();
    if (!this._heartbeat) {
      if (now >= this._expected && now < this._deadline && !this._silent) {
        this._silent = true;
        this._owner.silent?.();
        if (this._over) return;
      }
      if (now >= this._deadline) this.close(CloseCode.TIMEOUT, "the handshake took too long");
    } else {
      if (this._waiting !== null && !this._silent && now >= this._waiting + this._patience) {
        this._silent = true;
        this._write([{ type: "ping" }]);
        this._owner.silent?.();
        if (this._over) return;
      }
      const beat = this._heartbeat.check(now);
      if (beat === "ping") this._write([{ type: "ping" }]);
      else if (beat === "dead") this.close(CloseCode.TIMEOUT, "nothing was heard for too long");
    }
    this._arm();
  }

  /** @param {string} reason */
  _end(reason) {
    if (this._over) return;
    this._over = true;
    clearTimeout(this._timer);
    this._socket.close(1000);
    // After a fault of the gateway the last CLOSE is our own complaint, not a statement of the
    // gateway.
    this._owner.ended(this._last?.reason || reason, this.damaged ? null : this._last);
  }
}
