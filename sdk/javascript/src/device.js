/**
 * A device: it dials, stays in touch, hands messages over and sends them.
 *
 *     const device = await connect({ url: "wss://gateway/hop", app: "shop", name: "phone-1", token });
 *     device.onMessage((message) => console.log(message.text));
 *
 * What decides is in `session`, what is durable in the inbox, the connection in `contact`; this module
 * is the application's view of them.
 */

import * as compose from "./compose.js";
import { Contact } from "./contact.js";
import { LasthopError, MessageRefused } from "./errors.js";
import { MessageHandle, Status } from "./handle.js";
import { Backoff } from "./retry.js";
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
 * @property {string} url Of the gateway's WebSocket: `ws://host:port/hop` or `wss://`.
 * @property {string} app
 * @property {string} name
 * @property {string} [token]
 * @property {Inbox} inbox
 * @property {string} [link] How the device is connected: wifi, mno ...
 * @property {string} [network] The operator, the SSID ...
 * @property {number} [heartbeat] Seconds of silence after which to ask whether the gateway is there.
 * @property {Partial<import("./session.js").Terms>} [terms] Other limits than the usual ones.
 * @property {import("./channel.js").SocketClass} WebSocket
 * @property {{first?: number, longest?: number, random?: () => number}} [backoff] Milliseconds.
 * @property {() => number} [now] Milliseconds since 1970.
 */

export class Device {
  /**
   * Use `open`, or `connect` of the package.
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
        tell: (happening) => this._tell(happening),
        failed: (error) => void this._fail(error),
      },
      this._now,
    );
    const { url, WebSocket, link, network, heartbeat } = options;
    /** @type {Contact} */
    this._contact = new Contact({
      turns: this._turns,
      WebSocket,
      url,
      place: { link, network, heartbeat },
      backoff: new Backoff(options.backoff),
      now: this._now,
      changed: () => this._changed(),
    });
    /** @type {Message[]} */
    this._ready = [];
    /** @type {string | null} Who takes the messages. */
    this._consumer = null;
    /** @type {(() => void)[]} */
    this._stirred = [];
    /** @type {Map<string, MessageHandle>} Those that are not at their end. */
    this._handles = new Map();
    /** @type {Map<string, {resolve: (message: Message) => void, reject: (error: unknown) => void}>} */
    this._answers = new Map();
    /** @type {Set<() => void>} */
    this._watchers = new Set();
    /** @type {((id: string, refusal: Refusal) => void) | null} */
    this._onRefused = null;
    /** @type {unknown} What ended the device. */
    this.error = null;
    /** @type {Promise<void> | null} */
    this._closing = null;
  }

  /** Open the inbox and start to dial; it does not wait for the gateway.
   * @param {DeviceOptions} options */
  static async open(options) {
    const { app, name, token, terms } = options;
    const held = await options.inbox.load();
    const session = new Session({ ...DEFAULT_TERMS, ...terms, app, name, token }, held);
    const device = new Device(options, session);
    device._contact.run().catch((error) => device._fail(error));
    device._turns.nudge();
    return device;
  }

  /** Make everything durable, say goodbye, and let go of the inbox. */
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

  /** Whether the gateway has welcomed this device and is still there. */
  get connected() {
    return this._contact.there;
  }

  /** Why there is no contact, in words. */
  get problem() {
    return this._contact.problem;
  }

  /** How many connections have ended because what came over them could not be understood. */
  get damaged() {
    return this._contact.damaged;
  }

  /** The smoothed round-trip time in milliseconds, when it is known. */
  get roundTrip() {
    return this._contact.roundTrip;
  }

  /** Seconds of silence after which the connection is tried, when there is one. */
  get heartbeat() {
    return this._contact.heartbeat;
  }

  /** How many messages wait for the gateway. */
  get waiting() {
    return this._session.waiting;
  }

  /** Call this whenever contact is made or lost, or the device ends; returns how to stop that.
   * @param {() => void} watcher */
  onContact(watcher) {
    this._watchers.add(watcher);
    return () => this._watchers.delete(watcher);
  }

  /** Until there is contact. Rejects with what ended the device, or after `timeout` seconds.
   * @param {{timeout?: number}} options @returns {Promise<void>} */
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
   * The network has changed: dial at once.
   * @param {{link?: string, network?: string}} [place]
   */
  moved(place) {
    if (place) this._contact.place = { ...this._contact.place, ...place };
    this._contact.reconnect();
  }

  /** Do not wait any longer for the next attempt to dial. */
  hurry() {
    this._contact.hurry();
  }

  // Messages for the application. One of these ways at a time.

  /** Call this with every message, in order, one at a time; a message is done when what it returns
   * has come to its end. If it fails, the device ends, and the message comes again in its next life.
   * @param {(message: Message) => unknown} callback */
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

  /** Messages in order. Each is done when the next one is asked for; if the loop is left before, it
   * comes again in the device's next life.
   * @returns {AsyncGenerator<Message, void, void>} */
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

  /** Call this when the gateway refuses a message that nobody waits for.
   * @param {(id: string, refusal: Refusal) => void} callback */
  onRefused(callback) {
    this._onRefused = callback;
  }

  /** Send to `device:NAME`, `user:`, `topic:`, `service:`, `group:`, `queue:NAME`, or `app:`. Resolves when it is durable
   * here; the handle tells the rest.
   * @param {string} target @param {Body} body @param {MessageOptions} [options] */
  send(target, body, options = {}) {
    return this._send(compose.message(target, body, options));
  }

  /** Send to everyone who has subscribed to a topic.
   * @param {string} topic @param {Body} body @param {MessageOptions} [options] */
  publish(topic, body, options = {}) {
    return this._send(compose.message(`topic:${topic}`, body, options));
  }

  /** Send, and wait `timeout` seconds for the answer.
   * @param {string} target @param {Body} body
   * @param {MessageOptions & {timeout?: number}} options @returns {Promise<Message>} */
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
   * Ask for what is published to a topic from now on.
   * @param {string} topic
   */
  subscribe(topic) {
    return this._send(compose.subscription(topic, true));
  }

  /**
   * Ask for no more of it.
   * @param {string} topic
   */
  unsubscribe(topic) {
    return this._send(compose.subscription(topic, false));
  }

  /**
   * Tell the gateway about the device: battery, place, links.
   * @param {object} report
   */
  report(report) {
    return this._send(compose.context(report));
  }

  /**
   * Tell the gateway that the user has read a message.
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

  // Within.

  /** @param {string} consumer */
  _claim(consumer) {
    if (this._consumer) {
      throw new LasthopError("conflict", `messages go to ${this._consumer} already`);
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

  /** @param {import("./session.js").Happening} happening */
  _tell(happening) {
    if (happening.kind === "lapsed") return;
    const { id } = happening;
    const handle = this._handles.get(id);
    const answer = this._answers.get(id);
    if (happening.kind === "answered") answer?.resolve(happening.message);
    else if (happening.kind === "refused") {
      handle?.move(Status.REFUSED, happening.refusal);
      answer?.reject(new MessageRefused(happening.refusal, id));
      if (!answer) this._onRefused?.(id, happening.refusal);
      this._handles.delete(id);
    } else handle?.move(happening.kind);
    // A refusal may follow an acceptance, but who holds the handle for that long is told by onRefused.
    if (happening.kind === "accepted") this._retire(id);
  }

  /**
   * Handles of accepted messages stay a while, for a refusal that may follow.
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

/** Handles that are kept for a refusal that may follow an acceptance. */
const REMEMBERED = 1024;
