/** The history of one delivery as a picture: where the message was, when, and why. */

import { s, span } from "./dom.js";

/** @typedef {{n: number, time: string, since: number, what: string, why: string, link?: string, facts?: Record<string, string>}} Told */

const LINE = 16;

/** How the lanes are laid out where there is room, and on a phone. */
const WIDE = { names: ["publisher", "gateway", "link", "device"], lane: 60, left: 34, text: 248 };
const NARROW = { names: ["from", "here", "link", "to"], lane: 32, left: 16, text: 136 };
const ROOMY = 520;

/** @type {Record<string, {lane: number, tone: string}>} */
const PLACES = {
  accepted: { lane: 1, tone: "a" },
  held: { lane: 1, tone: "b" },
  waits: { lane: 1, tone: "b" },
  released: { lane: 1, tone: "a" },
  requeued: { lane: 1, tone: "b" },
  transmitted: { lane: 2, tone: "a" },
  sent: { lane: 2, tone: "c" },
  received: { lane: 3, tone: "a" },
  delivered: { lane: 3, tone: "c" },
  read: { lane: 3, tone: "c" },
  retracted: { lane: 3, tone: "b" },
  replied: { lane: 0, tone: "c" },
};
const UNHAPPY = { lane: 1, tone: "d" };

/** @param {string} text @param {number} most @returns {string[]} */
function wrapped(text, most) {
  /** @type {string[]} */
  const lines = [""];
  const words = text.split(" ").flatMap((word) => word.match(new RegExp(`.{1,${most}}`, "gu")) ?? []);
  for (const word of words) {
    const line = lines[lines.length - 1];
    if (line && line.length + word.length >= most) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  return lines;
}

/** @param {Told} told */
const headline = ({ what, link }) => (link ? `${what} over ${link}` : what);

/** @param {Told} told */
const factsOf = ({ facts }) => Object.entries(facts ?? {}).map(([name, value]) => `${name} ${value}`).join(", ");

/**
 * @param {Told[]} story
 * @returns {(width: number) => SVGElement}
 */
export const storyPicture = (story) => (width) => {
  const roomy = width >= ROOMY;
  const { names, lane, left, text } = roomy ? WIDE : NARROW;
  const most = Math.max(12, Math.floor((width - text - 4) / (roomy ? 6 : 6.4)));
  let y = 30;
  const rows = story.map((told) => {
    const when = told.since ? `+${span(told.since / 1e6)}` : told.time.slice(11, 23);
    const heads = wrapped(headline(told), roomy ? most - 16 : most);
    const facts = factsOf(told);
    const small = [...(roomy ? [] : [when]), ...wrapped(told.why, most), ...(facts ? wrapped(facts, most) : [])];
    const row = { when, heads, small, y, place: PLACES[told.what] ?? UNHAPPY };
    y += 10 + LINE * (heads.length + small.length);
    return row;
  });
  const svg = s("svg", { viewBox: `0 0 ${width} ${y}`, width, height: y, "aria-hidden": "true" });
  const x = (/** @type {number} */ place) => left + place * lane;
  names.forEach((name, place) => {
    svg.append(s("text", { x: x(place), y: 10, "text-anchor": "middle" }, name));
    svg.append(s("line", { x1: x(place), x2: x(place), y1: 16, y2: y - 8, class: "grid" }));
  });
  const points = rows.map((row) => `${x(row.place.lane)},${row.y}`);
  if (rows.length) points.unshift(`${x(0)},${rows[0].y - 14}`);
  svg.append(s("polyline", { points: points.join(" "), class: "curve e" }));
  rows.forEach(({ when, heads, small, y: top, place }) => {
    svg.append(s("circle", { cx: x(place.lane), cy: top, r: 6, class: `f${place.tone}` }));
    if (roomy) svg.append(s("text", { x: width - 4, y: top + 4, "text-anchor": "end" }, when));
    [...heads, ...small].forEach((line, index) => {
      const style = index < heads.length ? { class: "strong" } : null;
      svg.append(s("text", { x: text, y: top + 4 + LINE * index, ...style }, line));
    });
  });
  return svg;
};

/**
 * The history in words, for screen readers.
 * @param {Told[]} story
 */
export const storyInWords = (story) => story.map((told) => `${headline(told)}: ${told.why}`).join("; ");
