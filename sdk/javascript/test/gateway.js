/** The gateway's side of a session, as far as its promises go: for tests of the device's side. */

const same = (one, other) => Buffer.compare(Buffer.from(one ?? []), Buffer.from(other ?? [])) === 0;

export class ModelGateway {
  constructor() {
    this.incarnation = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
    this.epoch = 0;
    this.nextKey = 1n << 30n;
    /** What is to be delivered, in order: {key, text, number, done}. */
    this.mailbox = [];
    /** Texts of the device's messages in the order in which they were taken. */
    this.taken = [];
    this.previous = [];
    /** Told of every message that is acknowledged as delivered. */
    this.delivered = (_text) => {};
    /** Messages of the device that came again in a life that had them. */
    this.repeats = 0;
    this._begin();
  }

  _begin() {
    this.assigned = 0;
    this.received = 0;
    this.acknowledged = 0;
    for (const item of this.mailbox) item.number = null;
  }

  publish(text, headers = {}) {
    this.nextKey += 1n << 22n;
    this.mailbox.push({ key: this.nextKey, text, number: null, had: false, headers });
  }

  /** Answer a HELLO; the channel is open then. */
  hello(hello, { anew = false } = {}) {
    const claimed = !anew && hello.epoch !== undefined && same(hello.incarnation, this.incarnation) && hello.epoch === this.epoch;
    const highest = hello.individual?.at(-1)?.[1] ?? hello.received ?? 0;
    this.cursor = 0;
    if (claimed && highest <= this.assigned) {
      for (const [start, stop] of hello.dropped ?? []) this._dropped(start, stop);
      this.ack({ received: hello.received ?? 0, delivered: hello.delivered ?? 0 });
      return { type: "welcome", incarnation: this.incarnation, epoch: this.epoch, resumed: true, received: this.received, closed: this.acknowledged };
    }
    const known = [{ incarnation: this.incarnation, epoch: this.epoch, received: this.received }, ...this.previous];
    const old = known.find((one) => same(one.incarnation, hello.incarnation) && one.epoch === hello.epoch);
    this.previous = known.slice(0, 4);
    this.epoch = Math.max(this.epoch, hello.epoch ?? 0) + 1;
    this._begin();
    const superseded = old ? { superseded: old.received } : {};
    return { type: "welcome", incarnation: this.incarnation, epoch: this.epoch, ...superseded };
  }

  /** Another life, from a copy: what came later is forgotten. */
  restore(copy) {
    Object.assign(this, structuredClone(copy));
    this.incarnation = Uint8Array.from(this.incarnation, (byte) => byte + 1);
    this.previous = [];
    this.epoch += 1;
    this._begin();
  }

  copy() {
    // Keys tell the time, which does not go back.
    const { incarnation, epoch, mailbox, taken, previous } = this;
    return structuredClone({ incarnation, epoch, mailbox, taken, previous });
  }

  /** Up to so many messages that were not sent over this channel. */
  frames(most) {
    const frames = [];
    for (const item of this.mailbox) {
      if (frames.length === most) break;
      if (item.had || item.gone) continue;
      if (item.number === null) item.number = this.assigned++;
      if (item.number < this.cursor) continue;
      this.cursor = item.number + 1;
      const headers = Object.keys(item.headers).length ? item.headers : null;
      frames.push({ type: "message", seq: item.number, key: item.key, topic: null, headers, body: new TextEncoder().encode(item.text) });
    }
    return frames;
  }

  /** Give up what is in flight: its number is closed by a skip. */
  cancel() {
    const item = this.mailbox.find((one) => one.number !== null && !one.had && !one.gone && one.number >= this.acknowledged);
    if (!item) return null;
    item.gone = true;
    return { type: "skip", first: item.number, count: 1 };
  }

  ack({ received, delivered }) {
    if (delivered > received || received > this.assigned) throw new Error("impossible acknowledgement");
    this.acknowledged = Math.max(this.acknowledged, received);
    for (const item of this.mailbox) {
      if (item.number === null || item.number >= delivered || item.had || item.gone) continue;
      item.had = true;
      this.delivered(item.text);
    }
  }

  _dropped(start, stop) {
    for (const item of this.mailbox) {
      if (item.number !== null && start <= item.number && item.number < stop) item.gone = true;
    }
  }

  /** What the device said; returns what to answer. */
  receive(frames) {
    for (const frame of frames) {
      if (frame.type === "ack") this.ack(frame);
      else if (frame.type === "dropped") for (const [start, stop] of frame.ranges) this._dropped(start, stop);
      else if (frame.type === "skip") this.received = Math.max(this.received, frame.first + frame.count);
      else if (frame.type === "message") {
        if (frame.seq === this.received) {
          this.received += 1;
          const text = new TextDecoder().decode(frame.body);
          // The gateway knows a device's messages by their keys, whatever their numbers.
          if (this.taken.some(([key]) => key === frame.key)) this.repeats += 1;
          else this.taken.push([frame.key, text]);
        } else if (frame.seq > this.received) throw new Error("a gap in the device's numbers");
      }
    }
    return { type: "ack", received: this.received, delivered: this.received, individual: [] };
  }
}
