/**
 * An inbox in IndexedDB: a change is one transaction, which is on the disk when it completes. Only
 * one page at a time may have it open, since two would both act as the device.
 */

import { emptyState } from "../change.js";
import { LasthopError } from "../errors.js";

/**
 * @typedef {import("../change.js").Change} Change
 * @typedef {import("../change.js").Held} Held
 * @typedef {import("./memory.js").Inbox} Inbox
 */

const VERSION = 1;
const STORES = ["state", "inbox", "outbox", "keys"];

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
const result = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** @implements {Inbox} */
export class IndexedDbInbox {
  /**
   * @param {IDBDatabase} database
   * @param {() => void} release
   */
  constructor(database, release) {
    this._database = database;
    this._release = release;
    this._generation = 0;
  }

  /** @param {string} name */
  static async open(name) {
    const release = await hold(`lasthop inbox ${name}`);
    try {
      const request = indexedDB.open(`lasthop ${name}`, VERSION);
      request.onupgradeneeded = () => {
        const database = request.result;
        database.createObjectStore("state");
        database.createObjectStore("inbox", { keyPath: "position" });
        database.createObjectStore("outbox", { keyPath: "id" });
        const keys = database.createObjectStore("keys", { keyPath: "id" });
        keys.createIndex("generation", "generation");
      };
      const database = await result(request);
      // Another page deletes the database, or a newer version of this code changes it.
      database.onversionchange = () => database.close();
      return new IndexedDbInbox(database, release);
    } catch (error) {
      release();
      throw broken(error);
    }
  }

  /** @returns {Promise<Held>} */
  async load() {
    const transaction = this._database.transaction(STORES, "readonly");
    const all = (/** @type {string} */ name) => result(transaction.objectStore(name).getAll());
    const [state, inbox, outbox, keys] = await Promise.all([
      result(transaction.objectStore("state").get("state")),
      all("inbox"),
      all("outbox"),
      all("keys"),
    ]);
    /** @type {import("../change.js").State} */
    const known = state ?? emptyState();
    this._generation = known.generation;
    const idsOf = (/** @type {boolean} */ young) =>
      keys.filter((row) => (row.generation === known.generation) === young).map((row) => row.id);
    return {
      state: known,
      inbox,
      outbox: outbox.sort((one, other) => one.number - other.number),
      oldKeys: idsOf(false),
      youngKeys: idsOf(true),
    };
  }

  /** @param {Change} change @returns {Promise<void>} */
  apply(change) {
    return new Promise((resolve, reject) => {
      const transaction = this._database.transaction(STORES, "readwrite", { durability: "strict" });
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(broken(transaction.error));
      const inbox = transaction.objectStore("inbox");
      const outbox = transaction.objectStore("outbox");
      const keys = transaction.objectStore("keys");
      if (change.detached) eachRow(inbox, (row) => ({ ...row, number: null }));
      for (const row of change.stored) inbox.put(row);
      for (const [position, number] of change.adopted) amend(inbox, position, { number });
      for (const position of change.removed) inbox.delete(position);
      const { generation } = change.state;
      for (const id of change.keys) keys.put({ id, generation });
      if (generation !== this._generation) {
        this._generation = generation;
        forget(keys, generation - 1);
      }
      for (const row of change.queued) outbox.put(row);
      for (const [id, number] of change.renumbered) amend(outbox, id, { number });
      for (const id of change.taken) outbox.delete(id);
      transaction.objectStore("state").put(change.state, "state");
    });
  }

  async close() {
    this._database.close();
    this._release();
  }
}

/** @param {unknown} error */
function broken(error) {
  if (error instanceof LasthopError) return error;
  const full = error instanceof DOMException && error.name === "QuotaExceededError";
  return new LasthopError(full ? "store_full" : "store_broken", `the inbox failed: ${String(error)}`);
}

/** @param {IDBObjectStore} store @param {(row: any) => any} change */
function eachRow(store, change) {
  store.openCursor().onsuccess = (event) => {
    const cursor = /** @type {IDBRequest<IDBCursorWithValue | null>} */ (event.target).result;
    if (!cursor) return;
    cursor.update(change(cursor.value));
    cursor.continue();
  };
}

/** @param {IDBObjectStore} store @param {IDBValidKey} key @param {object} fields */
function amend(store, key, fields) {
  const request = store.get(key);
  request.onsuccess = () => {
    if (request.result) store.put({ ...request.result, ...fields });
  };
}

/**
 * Forget the ids of generations before `oldest`.
 * @param {IDBObjectStore} keys @param {number} oldest
 */
function forget(keys, oldest) {
  const range = IDBKeyRange.upperBound(oldest, true);
  keys.index("generation").openKeyCursor(range).onsuccess = (event) => {
    const cursor = /** @type {IDBRequest<IDBCursor | null>} */ (event.target).result;
    if (!cursor) return;
    keys.delete(cursor.primaryKey);
    cursor.continue();
  };
}

/**
 * Keep other pages out, where the browser has locks (on localhost and over TLS).
 * @param {string} name @returns {Promise<() => void>}
 */
function hold(name) {
  const locks = globalThis.navigator?.locks;
  if (!locks) return Promise.resolve(() => {});
  return new Promise((resolve, reject) => {
    void locks.request(name, { ifAvailable: true }, (lock) => {
      if (!lock) {
        reject(new LasthopError("conflict", "this device is open in another page"));
        return undefined;
      }
      return new Promise((release) => resolve(() => release(undefined)));
    });
  });
}
