/** The channels page: how devices are connected now, by link, with latency and price, and what the pipeline measured. */

import { data } from "../api.js";
import { picture, piles } from "../charts.js";
import { card, count, figure, h, pill, size, span, table, wide } from "../dom.js";

export const title = "Channels";

/** @param {[number, number] | undefined} pair @param {(value: number) => string} show */
const range = (pair, show) => (pair ? (pair[0] === pair[1] ? show(pair[0]) : `${show(pair[0])} to ${show(pair[1])}`) : "–");

/** @param {any} summary */
function measured(summary) {
  if (!summary?.channels?.length) return null;
  const sum = (/** @type {string} */ link, /** @type {string} */ what) =>
    (summary.usage ?? []).reduce((/** @type {number} */ total, /** @type {any} */ row) => (row.link === link ? total + (row[what] ?? 0) : total), 0);
  return wide(
    "Measured by the pipeline",
    table(
      ["link", "#networks", "#transmissions", "#carried", "#cost", "#round trip", "#contention", "#contended"],
      summary.channels.map((/** @type {any} */ row) => [
        pill(row.link || "unnamed"),
        count(row.networks),
        count(row.transmissions),
        size(sum(row.link, "bytes")),
        figure(sum(row.link, "money")),
        row.rtt === null ? "–" : span(row.rtt),
        row.contention === null ? "–" : figure(row.contention),
        row.contended === null ? "–" : `${figure(100 * row.contended)} %`,
      ]),
    ),
  );
}

/** @param {HTMLElement} root */
export async function render(root) {
  const page = await data("links");
  const summary = await data("pipeline");
  const trips = page.links.filter((/** @type {any} */ one) => one.round_trip);
  const latency = picture(
    "Median round trip by link",
    piles(() => ({ unit: "ms", tones: ["a"], bars: trips.map((/** @type {any} */ one) => ({ label: one.link, parts: [one.round_trip[0]] })) })),
  );
  const share = picture(
    "Channels by link",
    piles(() => ({ unit: "channels", tones: ["c"], bars: page.links.map((/** @type {any} */ one) => ({ label: one.link, parts: [one.channels] })) })),
  );
  root.append(
    h("h1", null, "Channels"),
    h("p", { class: "soft" }, `${count(page.in_contact)} devices are in contact${page.looked_at < page.in_contact ? `; ${count(page.looked_at)} of them are shown` : ""}.`),
    h(
      "div",
      { class: "cards" },
      wide(
        "Live channels by link",
        table(
          ["link", "#channels", "#networks", "#round trip (median, p90)", "#heartbeat", "#price of 1 kB"],
          page.links.map((/** @type {any} */ one) => [
            pill(one.link, "good"),
            count(one.channels),
            count(one.networks),
            range(one.round_trip, (ms) => `${figure(ms)} ms`),
            range(one.heartbeat, span),
            range(one.price, figure),
          ]),
          "No device is in contact.",
        ),
      ),
      trips.length ? card("Latency", latency.element) : null,
      page.links.length ? card("Number of channels", share.element) : null,
      measured(summary),
    ),
  );
}
