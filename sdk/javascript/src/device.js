/**
 * A device: it dials, stays in contact, passes messages to the application and sends its messages.
 *
 *     const device = await connect({ url: "wss://gateway/hop", app: "shop", name: "phone-1", token });
 *     device.onMessage((message) => console.log(message.text));
 *
 * Decisions are made in `session`, the inbox is durable, and `contact` has the connection; this
 * module is the application's view of them.
 */

import * as compose from "./compose.js";
import { Contact } from "./contact.js";
import { LasthopError, MessageRefused } from "./errors.js";
import { MessageHandle, Status } from "./handle.js";
import { DEFAULT_TERMS, Session } from "./session.js";
import { Turns } from "./turns.js";

/**
 * @typedef {import("./message.js").Message} Message
 * @typedef {import("./message.js").Refusal} Refusal
 * @typedef {import("./inbox/memory.js").Inbox} Inbox
 * @typedef {import("./compose.js").Body} Body
 * @typedef {import("./compose.js").Options} MessageOptions
 *
 * @typedef {object} DeviceOptions
 * @property {string} url The address of the gateway's WebSocket: `ws://host:port/hop` or `wss://`.
 * @property {string} app
 * @property {string} name
 * @property {string} [token]
 * @property {Inbox} inbox
 * @property {import("./ways.js").Way[]} [ways] Other ways to the gateway, used if they are preferred or the first
 *   fails.
 * @property {string} [link] The kind of the device's link: wifi, mno ...
 * @property {string} [network] The name of the network: the operator, the SSID ...
 * @property {number} [heartbeat] Seconds of silence after which to check that the gateway is there.
 * @property {boolean} [checksums] Whether to offer checksums on links without TLS; true by default.
 * @property {Partial<import("./session.js").Terms>} [terms] Limits that differ from the defaults.
 * @property {import("./channel.js").SocketClass} WebSocket
 * @property {{first?: number, longest?: number, random?: () => number}} [backoff] Waits
 *   between attempts to dial, in milliseconds.
 * @property {() => number} [now] Returns milliseconds since 1970.
 */

export class Device {
  /**
   * Create a device; applications use `open`, or `connect` of the package.
   * @param {DeviceOptions} options @param {Session} session
   */
  constructor(options, session) {
    this.app = options.app;
    this.name = options.name;
    this._inbox = options.inbox;
    this._now = options.now ?? Date.now;
    this._session = session;
    this._turns = new Turns(
      session,
      options.inbox,
      {
        send: (frames) => this._contact.send(frames),
        room: () => this._contact.room,
        ready: (messages) => this._arrived(messages),
        notify: (event) => this._notify(event),
        failed: (error) => void this._fail(error),
      },
      this._now,
    );
    const { url, ways = [], WebSocket, link, network, heartbeat, checksums } = options;
    /** @type {Contact} */
    this._contact = new Contact({
      turns: this._turns,
      WebSocket,
      ways: [{ url }, ...ways],
      place: { link, network, heartbeat },
      checksums,
      backoff: options.backoff,
      now: this._now,
      changed: () => this._changed(),
    });
    /** @type {Message[]} */
    this._ready = [];
    /** @type {string | null} The method through which the application takes messages. */
    this._consumer = null;
    /** @type {(() => void)[]} */
    this._stirred = [];
    /**
     * @type {Map<string, MessageHandle>} The handles of messages that are not at their end, by id.
     */
    this._handles = new Map();
    /** @type {Map<string, {resolve: (message: Message) => void, reject: (error: unknown) => void}>} */
    this._answers = new Map();
    /** @type {Set<() => void>} */
    this._watchers = new Set();
    /** @type {((id: string, refusal: Refusal) => void) | null} */
    this._onRefused = null;
    /** @type {unknown} The error that ended the device; null while it runs. */
    this.error = null;
    /** @type {Promise<void> | null} */
    this._closing = null;
  }

  /**
   * Open the inbox and start to dial, without waiting for the gateway.
   * @param {DeviceOptions} options
   */
  static async open(options) {
    const { app, name, token, terms } = options;
    const held = await options.inbox.load();
    const session = new Session({ ...DEFAULT_TERMS, ...terms, app, name, token }, held);
    const device = new Device(options, session);
    device._contact.run().catch((error) => device._fail(error));
    device._turns.nudge();
    return device;
  }

  /** Make everything durable, close the connection with a goodbye, and close the inbox. */
  close() {
    this._closing ??= this._close();
    return this._closing;
  }

  async _close() {
    this._stir();
    await this._turns.idle();
    await this._contact.close();
    await this._turns.idle();
    const why = this.error ?? new LasthopError("conflict", "the device is closed");
    try {
      if (!this.error) await this._turns.commit(true);
    } finally {
      this._turns.end(why);
      for (const handle of this._handles.values()) handle.fail(why);
      for (const { reject } of this._answers.values()) reject(why);
      this._handles.clear();
      this._answers.clear();
      await this._inbox.close();
      this._stir();
      this._changed();
    }
  }

  /** @param {unknown} error */
  async _fail(error) {
    if (this._closing) return;
    this.error = error;
    await this.close().catch(() => {});
  }

  get closed() {
    return this._closing !== null;
  }

  // Contact.

  /** Whether the gateway has welcomed this device and the connection is still open. */
  get connected() {
    return this._contact.there;
  }

  /** The ways to the gateway, each with its state; the first is tried first. */
  get ways() {
    return this._contact.ways;
  }

  /** Why there is no contact, in words. */
  get problem() {
    return this._contact.problem;
  }

  /** The number of connections that ended because what the gateway sent could not be understood. */
  get damaged() {
    return this._contact.damaged;
  }

  /** The smoothed round-trip time in milliseconds; null until it is known. */
  get roundTrip() {
    return this._contact.roundTrip;
  }

  /** Seconds of silence after which the connection is checked, while there is one. */
  get heartbeat() {
    return this._contact.heartbeat;
  }

  /** The number of messages that wait for the gateway. */
  get waiting() {
    return this._session.waiting;
  }

  /**
   * Call `watcher` whenever contact is made or lost, or the device ends; return a function that
   * stops the calls.
   * @param {() => void} watcher
   */
  onContact(watcher) {
    this._watchers.add(watcher);
    return () => this._watchers.delete(watcher);
  }

  /**
   * Wait until there is contact. Rejects with the error that ended the device, or after `timeout`
   * seconds.
   * @param {{timeout?: number}} options @returns {Promise<void>}
   */
  contact({ timeout } = {}) {
    return new Promise((resolve, reject) => {
      /** @type {ReturnType<typeof setTimeout> | undefined} */
      let timer;
      const finish = (/** @type {() => void} */ settle) => {
        clearTimeout(timer);
        stop();
        settle();
      };
      const look = () => {
        if (this.connected) finish(resolve);
        else if (this.closed) {
          finish(() => reject(this.error ?? new LasthopError("conflict", "the device is closed")));
        }
      };
      const stop = this.onContact(look);
      if (timeout !== undefined) {
        const late = () => reject(new LasthopError("timeout", `no contact: ${this.problem}`));
        timer = setTimeout(() => finish(late), timeout * 1000);
      }
      look();
    });
  }

  /**
   * Dial at once, because the network has changed.
   * @param {{link?: string, network?: string}} [place]
   */
  moved(place) {
    if (place) this._contact.place = { ...this._contact.place, ...place };
    this._contact.reconnect();
  }

  /** End the wait for the next attempt to dial. */
  hurry() {
    this._contact.hurry();
  }

  // Messages for the application, through one of these methods at a time.

  /**
   * Call `callback` with every message, in order, one at a time; a message is done when the promise
   * that `callback` returns is resolved. If it rejects, the device ends, and the message is
   * delivered again when the device is opened again.
   * @param {(message: Message) => unknown} callback
   */
  onMessage(callback) {
    this._claim("onMessage");
    const run = async () => {
      for (let message = await this._next(); message; message = await this._next()) {
        await callback(message);
        this._finish(message);
      }
    };
    run().catch((error) => {
      console.error("lasthop: the handler of a message failed", error);
      return this._fail(error);
    });
  }

  /**
   * Yield messages in order. Each is done when the next one is asked for; if the loop is left
   * before, the message is delivered again when the device is opened again.
   * @returns {AsyncGenerator<Message, void, void>}
   */
  async *messages() {
    this._claim("messages()");
    try {
      for (let message = await this._next(); message; message = await this._next()) {
        yield message;
        this._finish(message);
      }
    } finally {
      this._consumer = null;
    }
  }

  // Messages from the application.

  /**
   * Call `callback` when the gateway refuses a message whose answer is not awaited.
   * @param {(id: string, refusal: Refusal) => void} callback
   */
  onRefused(callback) {
    this._onRefused = callback;
  }

  /**
   * Send to `device:NAME`, `user:`, `topic:`, `service:`, `group:`, `queue:NAME`, or `app:`.
   * Resolves when the message is durable on this device; the handle reports its further progress.
   * @param {string} target @param {Body} body @param {MessageOptions} [options]
   */
  send(target, body, options = {}) {
    return this._send(compose.message(target, body, options));
  }

  /**
   * Publish a message to a topic, for all its subscribers.
   * @param {string} topic @param {Body} body @param {MessageOptions} [options]
   */
  publish(topic, body, options = {}) {
    return this._send(compose.message(`topic:${topic}`, body, options));
  }

  /**
   * Send a message, and wait `timeout` seconds for the answer.
   * @param {string} target @param {Body} body
   * @param {MessageOptions & {timeout?: number}} options @returns {Promise<Message>}
   */
  async request(target, body, { timeout = 30, ...options } = {}) {
    const draft = compose.message(target, body, options, Math.ceil(timeout * 1000));
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    /** @type {string | null} */
    let asked = null;
    try {
      return await new Promise((resolve, reject) => {
        const queued = this._turns.ask((session, now) => {
          const id = session.queue(draft, now);
          this._answers.set(id, { resolve, reject });
          asked = id;
          return id;
        });
        queued.then((id) => {
          const late = () => reject(new LasthopError("timeout", "nobody answered in time", { id }));
          timer = setTimeout(late, timeout * 1000);
        }, reject);
      });
    } finally {
      clearTimeout(timer);
      if (asked !== null) {
        const id = asked;
        this._answers.delete(id);
        this._turns.post((session) => session.giveUp(id));
      }
    }
  }

  /**
   * Answer a message.
   * @param {Message} message @param {Body} body @param {MessageOptions} [options]
   */
  async reply(message, body, options = {}) {
    return this._send(compose.reply(message, body, options, this._now()));
  }

  /**
   * Subscribe to a topic, to receive what is published to it from now on.
   * @param {string} topic
   */
  subscribe(topic) {
    return this._send(compose.subscription(topic, true));
  }

  /**
   * End the subscription to a topic.
   * @param {string} topic
   */
  unsubscribe(topic) {
    return this._send(compose.subscription(topic, false));
  }

  /**
   * Report to the gateway about the device: battery, place, links.
   * @param {object} report
   */
  report(report) {
    return this._send(compose.context(report));
  }

  /**
   * Report to the gateway that the user has read a message.
   * @param {Message} message
   */
  read(message) {
    return this._send(compose.read(message));
  }

  /** @param {import("./compose.js").Draft} draft @returns {Promise<MessageHandle>} */
  _send(draft) {
    return this._turns.ask((session, now) => {
      const id = session.queue(draft, now);
      const handle = new MessageHandle(id);
      this._handles.set(id, handle);
      return handle;
    });
  }

  // Helpers.

  /** @param {string} consumer */
  _claim(consumer) {
    if (this._consumer) {
      throw new LasthopError("conflict", `messages already go to ${this._consumer}`);
    }
    this._consumer = consumer;
  }

  /** @returns {Promise<Message | null>} null: the device has ended */
  async _next() {
    for (;;) {
      if (this.closed) return null;
      const message = this._ready.shift();
      if (!message) {
        await /** @type {Promise<void>} */ (new Promise((resolve) => this._stirred.push(resolve)));
      } else if (message.deadline !== null && this._now() >= message.deadline) {
        this._turns.post((session) => session.lapsed(message));
      } else return message;
    }
  }

  /** @param {Message} message */
  _finish(message) {
    this._turns.post((session) => session.finished(message));
  }

  /** @param {Message[]} messages */
  _arrived(messages) {
    this._ready.push(...messages);
    this._stir();
  }

  _stir() {
    for (const resolve of this._stirred.splice(0)) resolve();
  }

  _changed() {
    for (const watcher of [...this._watchers]) watcher();
  }

  /** @param {import("./session.js").SessionEvent} event */
  _notify(event) {
    if (event.kind === "lapsed") return;
    const { id } = event;
    const handle = this._handles.get(id);
    const answer = this._answers.get(id);
    if (event.kind === "answered") answer?.resolve(event.message);
    else if (event.kind === "refused") {
      handle?.move(Status.REFUSED, event.refusal);
      answer?.reject(new MessageRefused(event.refusal, id));
      if (!answer) this._onRefused?.(id, event.refusal);
      this._handles.delete(id);
    } else handle?.move(event.kind);
    // A refusal may follow an acceptance; by then the application learns of it through onRefused.
    if (event.kind === "accepted") this._retire(id);
  }

  /**
   * Keep the handle of an accepted message for a while, for a refusal that may follow.
   * @param {string} id
   */
  _retire(id) {
    const handle = this._handles.get(id);
    if (!handle) return;
    this._handles.delete(id);
    this._handles.set(id, handle);
    if (this._handles.size <= REMEMBERED) return;
    for (const [other, { status }] of this._handles) {
      if (this._handles.size <= REMEMBERED) break;
      if (status === Status.ACCEPTED) this._handles.delete(other);
    }
  }
}

/** The number of handles that are kept for a refusal that may follow an acceptance. */
const REMEMBERED = 1024;
