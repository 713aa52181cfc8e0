/** Functions for making elements. Text is always inserted as text: no data is ever read as HTML. */

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes
 */

const SVG = "http://www.w3.org/2000/svg";

/** @param {Element} element @param {Attributes | null} attributes @param {Child[]} children */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * An element: `h("p", { class: "soft" }, "text")`; attributes that start with "on" are listeners.
 * @param {string} tag @param {Attributes | null} [attributes] @param {...Child} children
 */
export function h(tag, attributes = null, ...children) {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/**
 * An SVG element; like `h`.
 * @param {string} tag @param {Attributes | null} [attributes] @param {...Child} children
 */
export function s(tag, attributes = null, ...children) {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

/**
 * A card with a heading.
 * @param {string} title @param {...Child} children
 */
export const card = (title, ...children) => h("section", { class: "card" }, h("h2", null, title), ...children);

/**
 * A card as wide as the page.
 * @param {string} title @param {...Child} children
 */
export const wide = (title, ...children) => h("section", { class: "card wide" }, h("h2", null, title), ...children);

/**
 * A table. Columns whose heading starts with "#" are numbers.
 * @param {string[]} heads @param {Child[][]} rows @param {string} [none] what to say without rows
 */
export function table(heads, rows, none = "Nothing here yet.") {
  if (!rows.length) return h("p", { class: "soft" }, none);
  const mark = (/** @type {number} */ place) => (heads[place].startsWith("#") ? { class: "n" } : null);
  const head = heads.map((name, place) => h("th", { scope: "col", ...mark(place) }, name.replace(/^#/, "")));
  const body = rows.map((row) => h("tr", null, ...row.map((cell, place) => h("td", mark(place), cell))));
  return h("div", { class: "scroll" }, h("table", null, h("thead", null, h("tr", null, ...head)), h("tbody", null, ...body)));
}

/**
 * Large numbers with names.
 * @param {[string, Child][]} pairs
 */
export const numbers = (pairs) =>
  h("dl", { class: "numbers" }, ...pairs.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));

/** @param {string} text @param {string} [style] */
export const pill = (text, style = "soft") => h("span", { class: `pill ${style}` }, text);

/**
 * A link within the dashboard.
 * @param {string} page @param {string[]} path @param {Child} [text]
 */
export const to = (page, path, text) =>
  h("a", { href: `#/${[page, ...path.map(encodeURIComponent)].join("/")}` }, text ?? path.at(-1));

/**
 * An input with its label.
 * @param {string} text @param {string} name @param {Attributes} [attributes]
 */
export const field = (text, name, attributes = {}) => h("label", null, text, h("input", { name, ...attributes }));

/** @param {number} value */
export const count = (value) => Math.round(value).toLocaleString("en");

/** @param {number} value a rate or a time, with as many digits as it deserves */
export function figure(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  if (bytes < 1e6) return `${figure(bytes / 1e3)} kB`;
  return bytes < 1e9 ? `${figure(bytes / 1e6)} MB` : `${figure(bytes / 1e9)} GB`;
}

/** @param {number} seconds */
export function span(seconds) {
  if (seconds < 1) return `${figure(seconds * 1000)} ms`;
  if (seconds < 120) return `${figure(seconds)} s`;
  if (seconds < 7200) return `${figure(seconds / 60)} min`;
  return seconds < 172800 ? `${figure(seconds / 3600)} h` : `${figure(seconds / 86400)} days`;
}

/** @param {number | string} when microseconds since 1970, or RFC 3339 */
export function moment(when) {
  const date = new Date(typeof when === "number" ? when / 1000 : when);
  const today = new Date().toDateString() === date.toDateString();
  return h("time", { datetime: date.toISOString() }, today ? date.toLocaleTimeString() : date.toLocaleString());
}

/** @type {Record<string, string>} */
const STYLES = {
  delivered: "good",
  sent: "good",
  received: "good",
  expired: "warn",
  cancelled: "warn",
  replaced: "warn",
  suppressed: "warn",
  undeliverable: "bad",
  aborted: "bad",
  timed_out: "bad",
};

/** @param {string} state */
export const stateOf = (state) => pill(state.replaceAll("_", " "), STYLES[state] ?? "soft");
