/**
 * The client's side of RFC 6455 on Node's own HTTP, for versions of Node that have no WebSocket. It
 * implements what the SDK uses of the browser's class: binary messages, one subprotocol, no
 * extensions.
 */

import { createHash, randomBytes } from "node:crypto";
import http from "node:http";
import https from "node:https";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const CONTINUATION = 0x0;
const BINARY = 0x2;
const CLOSE = 0x8;
const PING = 0x9;
const PONG = 0xa;

/** The largest message in bytes, above any frame that we offer to accept. */
const MAX_MESSAGE = 2 ** 24;

/** @typedef {import("../channel.js").Socket} Socket */

/** @implements {Socket} */
export class NodeWebSocket {
  /** @param {string} url @param {string} protocol */
  constructor(url, protocol) {
    const { protocol: scheme } = new URL(url);
    if (scheme !== "ws:" && scheme !== "wss:") throw new SyntaxError(`this is not the address of a WebSocket: ${url}`);
    this.binaryType = "arraybuffer";
    /** @type {((event: any) => void) | null} */
    this.onopen = null;
    /** @type {((event: any) => void) | null} */
    this.onmessage = null;
    /** @type {((event: any) => void) | null} */
    this.onerror = null;
    /** @type {((event: any) => void) | null} */
    this.onclose = null;
    /** @type {import("node:net").Socket | null} */
    this._socket = null;
    this._buffer = Buffer.alloc(0);
    /** @type {Buffer[]} The parts of a message that came in several frames. */
    this._parts = [];
    this._closing = false;
    this._over = false;
    const key = randomBytes(16).toString("base64");
    this._request = (scheme === "wss:" ? https : http).request(url.replace(/^ws/, "http"), {
      headers: {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Protocol": protocol,
      },
    });
    this._request.on("error", (error) => this._end(error.message));
    this._request.on("response", (response) => {
      response.resume();
      this._end(`the gateway answered ${response.statusCode} instead of a WebSocket`);
    });
    this._request.on("upgrade", (response, socket, head) => {
      const expected = createHash("sha1").update(key + GUID).digest("base64");
      if (response.headers["sec-websocket-accept"] !== expected) {
        socket.destroy();
        this._end("the gateway does not speak WebSocket");
        return;
      }
      this._opened(/** @type {import("node:net").Socket} */ (socket), head);
    });
    this._request.end();
  }

  get bufferedAmount() {
    return this._socket?.writableLength ?? 0;
  }

  /** @param {Uint8Array} data */
  send(data) {
    if (!this._socket) throw new Error("the WebSocket is not open");
    this._write(BINARY, data);
  }

  /** @param {number} [code] */
  close(code = 1000) {
    if (this._over || this._closing) return;
    this._closing = true;
    if (!this._socket) {
      this._request.destroy();
      return;
    }
    this._write(CLOSE, Uint8Array.of(code >> 8, code & 0xff));
    this._socket.end();
  }

  /** @param {import("node:net").Socket} socket @param {Buffer} head */
  _opened(socket, head) {
    this._socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (data) => this._arrived(data));
    socket.on("error", (error) => this._end(error.message));
    socket.on("end", () => socket.end());
    socket.on("close", () => this._end("the gateway hung up"));
    this.onopen?.({});
    if (head.length) this._arrived(head);
  }

  /** @param {number} opcode @param {Uint8Array} data */
  _write(opcode, data) {
    if (!this._socket?.writable) return;
    const size = data.length;
    const extra = size < 126 ? 0 : size < 65536 ? 2 : 8;
    const frame = Buffer.alloc(6 + extra + size);
    frame[0] = 0x80 | opcode;
    frame[1] = 0x80 | (extra === 0 ? size : extra === 2 ? 126 : 127);
    if (extra === 2) frame.writeUInt16BE(size, 2);
    else if (extra === 8) frame.writeBigUInt64BE(BigInt(size), 2);
    const mask = randomBytes(4);
    frame.set(mask, 2 + extra);
    for (let index = 0; index < size; index += 1) frame[6 + extra + index] = data[index] ^ mask[index & 3];
    this._socket.write(frame);
  }

  /** @param {Buffer} data */
  _arrived(data) {
    this._buffer = this._buffer.length ? Buffer.concat([this._buffer, data]) : data;
    while (!this._over && this._frame());
  }

  /** Take one frame from the buffer, if it is complete. */
  _frame() {
    const buffer = this._buffer;
    if (buffer.length < 2) return false;
    let size = buffer[1] & 0x7f;
    let start = 2;
    if (size === 126) {
      if (buffer.length < 4) return false;
      size = buffer.readUInt16BE(2);
      start = 4;
    } else if (size === 127) {
      if (buffer.length < 10) return false;
      size = Number(buffer.readBigUInt64BE(2));
      start = 10;
    }
    const opcode = buffer[0] & 0x0f;
    const whole = this._parts.reduce((sum, part) => sum + part.length, size);
    // RFC 6455, 5.1 and 5.2: a server's frames are not masked, and the reserved bits belong to
    // extensions.
    if (buffer[1] & 0x80 || buffer[0] & 0x70 || whole > MAX_MESSAGE) {
      this._fail("the gateway broke the rules of WebSocket");
      return false;
    }
    if (buffer.length < start + size) return false;
    const payload = buffer.subarray(start, start + size);
    this._buffer = buffer.subarray(start + size);
    this._take(opcode, Boolean(buffer[0] & 0x80), payload);
    return true;
  }

  /** @param {number} opcode @param {boolean} last @param {Buffer} payload */
  _take(opcode, last, payload) {
    if (opcode === PING) this._write(PONG, payload);
    else if (opcode === CLOSE) {
      const reason = payload.subarray(2).toString();
      this.close();
      this._end(reason);
    } else if (opcode === BINARY || opcode === CONTINUATION) {
      this._parts.push(payload);
      if (!last) return;
      const message = Buffer.concat(this._parts.splice(0));
      // A copy in a buffer of its own, as the browser gives it.
      this.onmessage?.({ data: Uint8Array.from(message).buffer });
    } else if (opcode !== PONG) this._fail("the gateway sent a WebSocket message that is not binary");
  }

  /** @param {string} reason */
  _fail(reason) {
    this._socket?.destroy();
    this._end(reason);
  }

  /** @param {string} reason */
  _end(reason) {
    if (this._over) return;
    this._over = true;
    this.onclose?.({ code: 1006, reason });
  }
}
