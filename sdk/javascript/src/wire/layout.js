/** The numbers of the hop protocol's first byte, as in the tables of docs/hop-protocol.md. */

export const BUNDLE = 0x00;
/** The most frames in one bundle. */
export const MOST_BUNDLED = 2048;

export const PING = 0x01;
export const PONG = 0x02;
export const TIME = 0x03;
export const WANTED = 0x04;
export const WAYS = 0x05;

export const CRITICAL = 0x40;
export const HELLO = 0x40;
export const WELCOME = 0x41;
export const CLOSE = 0x42;
export const ACK = 0x43;
export const ADVANCE = 0x44;
export const SKIP = 0x45;
export const CREDIT = 0x46;
export const DROPPED = 0x47;
export const LANE = 0x4b;
export const LAST = 0x4c;

export const MESSAGE = 0x80;
export const NUMBERED = 0x40;
export const KEY_BITS = 0x30;
export const KEY_NEXT = 0x00;
export const KEY_FORWARD = 0x10;
export const KEY_ABSOLUTE = 0x20;
export const KEY_NONE = 0x30;
export const TOPIC = 0x08;
export const HEADERS = 0x04;
export const UNSEQUENCED = 0x02;
export const IN_LANE = 0x01;

/** A key has 41 bits of milliseconds, 10 of node, 12 of counter. */
export const TIME_SHIFT = 22n;
export const NODE_MASK = 0x3ff000n;
export const COUNTER_MASK = 0xfffn;
export const FORWARD_BITS = 6n;
export const FORWARD_LIMIT = 1n << FORWARD_BITS;
export const MAX_KEY = (1n << 63n) - 1n;

/** Topics that a channel gives a token, in each direction; later topics are spelt out. */
export const MAX_TOKEN = 255;
