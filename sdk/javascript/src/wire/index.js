/** The hop protocol's codec on its own, for tools and tests. */

export { Decoder } from "./decoder.js";
export { Encoder } from "./encoder.js";
export * from "./frames.js";
