/**
 * An inbox in a file, for Node: a journal with one line of JSON for every change, on the disk
 * before `apply` returns. When most of the journal is history, a shorter one is written beside it
 * and renamed.
 */

import { open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

import { LasthopError } from "../errors.js";
import { Rows } from "./memory.js";

/**
 * @typedef {import("../change.js").Change} Change
 * @typedef {import("./memory.js").Inbox} Inbox
 */

/** Changes after which to check whether the journal is mostly history. */
const COMPACT_AFTER = 2_000;

/** @param {string} _name @param {unknown} value */
function replacer(_name, value) {
  if (typeof value === "bigint") return { $key: value.toString() };
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString("base64") };
  return value;
}

/** @param {string} _name @param {any} value */
function reviver(_name, value) {
  if (value && typeof value === "object") {
    if (typeof value.$key === "string") return BigInt(value.$key);
    if (typeof value.$bytes === "string") return Uint8Array.from(Buffer.from(value.$bytes, "base64"));
  }
  return value;
}

/**
 * Open a file for its owner alone, whatever the umask and whoever created it; some file systems
 * have no modes.
 * @param {string} path @param {string} flags
 */
async function openPrivate(path, flags) {
  const file = await open(path, flags, 0o600);
  await file.chmod(0o600).catch(() => {});
  return file;
}

/** @param {string} detail @param {unknown} error */
const broken = (detail, error) => new LasthopError("store_broken", `${detail}: ${String(error)}`);

/** @implements {Inbox} */
export class FileInbox {
  /** @param {string} path @param {number} [compactAfter] */
  constructor(path, compactAfter = COMPACT_AFTER) {
    this.path = path;
    this._compactAfter = compactAfter;
    this._rows = new Rows();
    /** @type {import("node:fs/promises").FileHandle | null} */
    this._file = null;
    this._lines = 0;
  }

  async load() {
    await this._lock();
    try {
      const text = await readFile(this.path, "utf8").catch((/** @type {any} */ error) => {
        if (error.code === "ENOENT") return "";
        throw error;
      });
      // A line without its end was being written when the process ended: its change was not
      // committed.
      const whole = text.slice(0, text.lastIndexOf("\n") + 1);
      for (const line of whole.split("\n")) if (line) this._replay(line);
      this._file = await openPrivate(this.path, "a");
      if (whole.length !== text.length) await this._file.truncate(Buffer.byteLength(whole));
      await this._syncFolder();
      return this._rows.held();
    } catch (error) {
      await this.close();
      throw error instanceof LasthopError ? error : broken("the inbox cannot be opened", error);
    }
  }

  /** @param {string} line */
  _replay(line) {
    let value;
    try {
      value = JSON.parse(line, reviver);
    } catch (error) {
      throw broken(`line ${this._lines + 1} of the inbox is damaged`, error);
    }
    if (value.held) this._rows = new Rows(value.held);
    else this._rows.apply(value);
    this._lines += 1;
  }

  /** @param {Change} change */
  async apply(change) {
    if (!this._file) throw new LasthopError("store_broken", "the inbox is not open");
    try {
      await this._file.appendFile(`${JSON.stringify(change, replacer)}\n`);
      await this._file.datasync();
    } catch (error) {
      throw broken("the inbox cannot be written", error);
    }
    this._rows.apply(change);
    this._lines += 1;
    if (this._lines >= this._compactAfter && this._lines > 4 * this._rows.size) await this._compact();
  }

  async _compact() {
    const beside = `${this.path}.new`;
    const file = await openPrivate(beside, "w");
    await file.appendFile(`${JSON.stringify({ held: this._rows.held() }, replacer)}\n`);
    await file.datasync();
    await rename(beside, this.path);
    await this._syncFolder();
    await this._file?.close();
    this._file = file;
    this._lines = 1;
  }

  async _syncFolder() {
    const folder = await open(dirname(this.path), "r");
    await folder.sync();
    await folder.close();
  }

  /** Lock the inbox for this process; the lock of a process that has ended does not count. */
  async _lock() {
    const lock = `${this.path}.lock`;
    for (;;) {
      try {
        await writeFile(lock, String(process.pid), { flag: "wx" });
        this._locked = true;
        return;
      } catch (error) {
        if (/** @type {any} */ (error).code !== "EEXIST") throw broken("the inbox cannot be locked", error);
      }
      const owner = Number(await readFile(lock, "utf8").catch(() => "0"));
      if (owner && alive(owner)) {
        throw new LasthopError("conflict", "this inbox is open in another process", { pid: owner });
      }
      await rm(lock, { force: true });
    }
  }

  async close() {
    await this._file?.close();
    this._file = null;
    if (this._locked) await rm(`${this.path}.lock`, { force: true });
    this._locked = false;
  }
}

/** @param {number} pid */
function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {any} */ (error).code === "EPERM";
  }
}
