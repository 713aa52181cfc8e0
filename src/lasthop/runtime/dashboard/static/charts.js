/** Charts in SVG, as wide as the element that contains them, redrawn when its width changes. */

import { figure, h, s } from "./dom.js";

/**
 * @typedef {{name: string, tone: string, values: (number | null)[]}} Series
 * @typedef {(width: number) => SVGElement} Draw
 */

const LEFT = 46;
const RIGHT = 10;
const TOP = 22;
const BOTTOM = 22;

/**
 * A chart with a description for screen readers.
 * @param {string} about @param {Draw} draw @param {Node} [legend]
 */
export function picture(about, draw, legend) {
  const frame = h("div", { role: "img", "aria-label": about });
  let width = 0;
  const redraw = () => width && frame.replaceChildren(draw(width));
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now === width) return;
    width = now;
    redraw();
  }).observe(frame);
  const element = h("figure", null, frame, legend);
  element.classList.add("plain");
  return { element, redraw, describe: (/** @type {string} */ text) => frame.setAttribute("aria-label", text) };
}

/** @param {[string, string][]} entries name and tone */
export function legend(entries) {
  const swatch = (/** @type {string} */ tone) =>
    s("svg", { viewBox: "0 0 14 10", "aria-hidden": "true" }, s("rect", { width: 14, height: 10, rx: 2, class: `f${tone}` }));
  return h("ul", { class: "legend" }, ...entries.map(([name, tone]) => h("li", null, swatch(tone), name)));
}

/** @param {number} most @returns {number[]} round numbers from 0 to above `most` */
function steps(most) {
  if (!(most > 0)) return [0, 1];
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough) ?? rough;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, index) => index * step);
}

/** @param {number} width @param {number} height @param {string} [unit] */
function canvas(width, height, unit) {
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
  if (unit) svg.append(s("text", { x: 2, y: 11 }, unit));
  return svg;
}

/**
 * Horizontal lines with their values.
 * @param {SVGElement} svg @param {number} width @param {[number, string][]} lines y and label
 */
function grid(svg, width, lines) {
  for (const [y, label] of lines) {
    svg.append(s("line", { x1: LEFT, x2: width - RIGHT, y1: y, y2: y, class: "grid" }));
    svg.append(s("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, label));
  }
}

/**
 * A number in few characters: 10k, 2M.
 * @param {number} value
 */
const short = (value) => (value >= 10_000 ? value.toLocaleString("en", { notation: "compact" }).toLowerCase() : figure(value));

/**
 * Labels below, as many as there is room for.
 * @param {SVGElement} svg @param {number} height @param {[number, string][]} labels x and text
 */
function below(svg, height, labels) {
  const width = Number(svg.getAttribute("width"));
  let free = 0;
  for (const [x, text] of labels) {
    const half = text.length * 3.3;
    const middle = Math.min(x, width - half - 2);
    if (middle - half < free) continue;
    svg.append(s("text", { x: middle, y: height - 6, "text-anchor": "middle" }, text));
    free = middle + half + 10;
  }
}

/**
 * Curves over places that follow one another, on a linear or logarithmic scale.
 * @param {() => {series: Series[], labels: string[], unit?: string, log?: boolean, height?: number, slots?: number}} content
 * @returns {Draw}
 */
export const curves = (content) => (width) => {
  const { series, labels, unit, log = false, height = 190, slots = labels.length } = content();
  const svg = canvas(width, height, unit);
  const values = series.flatMap((one) => one.values.flatMap((value) => (value === null ? [] : [value])));
  const most = Math.max(...values, log ? 1 : 0);
  const floor = log ? Math.min(...values.filter((value) => value > 0), 1) : 0;
  const [low, high] = log ? [Math.floor(Math.log10(floor)), Math.max(Math.ceil(Math.log10(most)), 1)] : [0, steps(most).at(-1) ?? 1];
  const room = height - TOP - BOTTOM;
  const y = (/** @type {number} */ value) => {
    const share = log ? (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low) : value / high;
    return TOP + room * (1 - share);
  };
  // A line for every power of ten, or every other where there are many.
  const stride = high - low > 5 ? 2 : 1;
  const powers = Array.from({ length: Math.floor((high - low) / stride) + 1 }, (_, index) => 10 ** (low + index * stride));
  grid(svg, width, (log ? powers : steps(most)).map((value) => [y(value), short(value)]));
  const offset = Math.max(0, slots - labels.length);
  const x = (/** @type {number} */ index) => LEFT + ((width - LEFT - RIGHT) * (index + offset)) / Math.max(1, slots - 1);
  for (const { tone, values: points } of series) {
    let path = "";
    let pen = false;
    points.forEach((value, index) => {
      if (value === null) pen = false;
      else {
        path += `${pen ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
        pen = true;
      }
    });
    svg.append(s("path", { d: path, class: `curve ${tone}` }));
    if (points.length < 40) {
      points.forEach((value, index) => value !== null && svg.append(s("circle", { cx: x(index), cy: y(value), r: 2.5, class: `f${tone}` })));
    }
  }
  below(svg, height, labels.map((label, index) => [x(index), label]));
  return svg;
};

/**
 * Bars, each a pile of parts.
 * @param {() => {bars: {label: string, parts: number[]}[], tones: string[], unit?: string, height?: number}} content
 * @returns {Draw}
 */
export const piles = (content) => (width) => {
  const { bars, tones, unit, height = 190 } = content();
  const svg = canvas(width, height, unit);
  const marks = steps(Math.max(...bars.map(({ parts }) => parts.reduce((a, b) => a + b, 0)), 0));
  const high = marks.at(-1) ?? 1;
  const room = height - TOP - BOTTOM;
  grid(svg, width, marks.map((value) => [TOP + room * (1 - value / high), short(value)]));
  const step = (width - LEFT - RIGHT) / Math.max(1, bars.length);
  const thick = Math.min(step * 0.8, 60);
  bars.forEach(({ parts }, index) => {
    let bottom = TOP + room;
    parts.forEach((part, place) => {
      const tall = (room * part) / high;
      bottom -= tall;
      const left = LEFT + step * (index + 0.5) - thick / 2;
      if (tall > 0) svg.append(s("rect", { x: left, y: bottom, width: thick, height: tall, class: `f${tones[place]}` }));
    });
  });
  below(svg, height, bars.map(({ label }, index) => [LEFT + step * (index + 0.5), label]));
  return svg;
};

/**
 * A week of chances: a row for every day, a column for every hour.
 * @param {number[]} week 168 values of 0 to 1 @returns {Draw}
 */
export const weekOf = (week) => (width) => {
  const height = 7 * 17 + BOTTOM;
  const svg = canvas(width, height);
  const cell = (width - LEFT - RIGHT) / 24;
  ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].forEach((day, row) => {
    svg.append(s("text", { x: LEFT - 8, y: row * 17 + 12, "text-anchor": "end" }, day));
    for (let hour = 0; hour < 24; hour += 1) {
      const chance = Math.max(0, Math.min(1, week[row * 24 + hour] ?? 0));
      svg.append(s("rect", { x: LEFT + hour * cell, y: row * 17, width: cell - 1, height: 16, class: "fa", opacity: 0.06 + 0.94 * chance }));
    }
  });
  below(svg, height, Array.from({ length: 12 }, (_, index) => [LEFT + cell * (2 * index + 0.5), `${2 * index}:00`]));
  return svg;
};
