/** The gateway's samples, once a second, for all pages. */

/**
 * @typedef {{at: number, kind: string, app?: string, device?: string, message?: string, reason?: string, link?: string}} Happened
 * @typedef {object} Sample
 * @property {number} at Microseconds.
 * @property {number} accepted
 * @property {Record<string, number>} ended
 * @property {number} commits
 * @property {number} commit_ms
 * @property {number} connections
 * @property {number} devices
 * @property {number} messages
 * @property {[number, number, number]} [latency]
 * @property {Happened[]} [events]
 */

const KEPT = 300;

class Live {
  constructor() {
    /** @type {Sample[]} */
    this.samples = [];
    /** @type {Set<(fresh: Sample[]) => void>} */
    this._listeners = new Set();
    /** @type {Set<(connected: boolean) => void>} */
    this._watchers = new Set();
    this.connected = false;
    const source = new EventSource("/dashboard/live");
    source.onmessage = ({ data }) => this._take(JSON.parse(data));
    source.onopen = () => this._tell(true);
    source.onerror = () => this._tell(false);
  }

  /** @param {Sample[]} samples */
  _take(samples) {
    const last = this.samples.at(-1)?.at ?? 0;
    const fresh = samples.filter(({ at }) => at > last);
    this.samples = [...this.samples, ...fresh].slice(-KEPT);
    for (const listener of this._listeners) listener(fresh);
  }

  /** @param {boolean} connected */
  _tell(connected) {
    this.connected = connected;
    for (const watcher of this._watchers) watcher(connected);
  }

  /**
   * Call `watcher` now and whenever the connection is made or lost.
   * @param {(connected: boolean) => void} watcher
   */
  onState(watcher) {
    this._watchers.add(watcher);
    watcher(this.connected);
  }

  /**
   * Call `listener` with every new sample; returns a function that stops that.
   * @param {(fresh: Sample[]) => void} listener
   */
  onSamples(listener) {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }
}

export const live = new Live();
