/** The story of one delivery as a picture: where the message was, when, and why. */

import { s, span } from "./dom.js";

/** @typedef {{n: number, time: string, since: number, what: string, why: string, link?: string, facts?: Record<string, string>}} Told */

const LANES = ["publisher", "gateway", "link", "device"];
const LANE = 60;
const LEFT = 34;
const TEXT = LEFT + LANE * 3 + 34;
const LINE = 16;

/** @type {Record<string, {lane: number, tone: string}>} */
const PLACES = {
  accepted: { lane: 1, tone: "a" },
  held: { lane: 1, tone: "b" },
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
  for (const word of text.split(" ")) {
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
  const most = Math.max(18, Math.floor((width - TEXT - 4) / 6));
  let y = 30;
  const rows = story.map((told) => {
    const why = wrapped(told.why, most);
    const facts = factsOf(told);
    const small = facts ? wrapped(facts, most) : [];
    const row = { told, why, small, y, place: PLACES[told.what] ?? UNHAPPY };
    y += 26 + LINE * (why.length + small.length);
    return row;
  });
  const svg = s("svg", { viewBox: `0 0 ${width} ${y}`, width, height: y, "aria-hidden": "true" });
  LANES.forEach((name, lane) => {
    const x = LEFT + lane * LANE;
    svg.append(s("text", { x, y: 10, "text-anchor": "middle" }, name));
    svg.append(s("line", { x1: x, x2: x, y1: 16, y2: y - 8, class: "grid" }));
  });
  const points = rows.map((row) => `${LEFT + row.place.lane * LANE},${row.y}`);
  if (rows.length) points.unshift(`${LEFT},${rows[0].y - 14}`);
  svg.append(s("polyline", { points: points.join(" "), class: "curve e" }));
  rows.forEach(({ told, why, small, y: top, place }) => {
    svg.append(s("circle", { cx: LEFT + place.lane * LANE, cy: top, r: 6, class: `f${place.tone}` }));
    svg.append(s("text", { x: TEXT, y: top + 4, class: "strong" }, headline(told)));
    svg.append(s("text", { x: width - 4, y: top + 4, "text-anchor": "end" }, told.since ? `+${span(told.since / 1e6)}` : told.time.slice(11, 23)));
    [...why, ...small].forEach((line, index) => {
      svg.append(s("text", { x: TEXT, y: top + 4 + LINE * (index + 1) }, line));
    });
  });
  return svg;
};

/**
 * The same in words.
 * @param {Told[]} story
 */
export const storyInWords = (story) => story.map((told) => `${headline(told)}: ${told.why}`).join("; ");
