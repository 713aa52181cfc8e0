/** The page of the pipeline's tables, drawn from the summary that the pipeline writes beside them. */

import { data } from "../api.js";
import { curves, legend, picture, piles, weekOf } from "../charts.js";
import { card, count, figure, h, moment, numbers, size, table, wide } from "../dom.js";

export const title = "Tables";

const TONES = "abcde";

/** @param {string} about @param {import("../charts.js").Draw} draw @param {[string, string][]} names */
const drawn = (about, draw, names) => picture(about, draw, names.length ? legend(names) : undefined).element;

/** @param {any} summary */
function outcomes({ outcomes: rows }) {
  if (!rows?.length) return null;
  const names = ["delivered", "expired", "suppressed", "open", "other"];
  const tones = ["c", "b", "e", "a", "d"];
  return card(
    "Outcomes of deliveries",
    drawn(
      "Deliveries by day and outcome",
      piles(() => ({ unit: "deliveries", tones, bars: rows.map((/** @type {any} */ row) => ({ label: row.date.slice(5), parts: names.map((name) => row[name]) })) })),
      names.map((name, place) => [name, tones[place]]),
    ),
  );
}

/** @param {any} summary */
function latency({ latency: rows }) {
  if (!rows?.length) return null;
  const names = ["p50", "p90", "p99"];
  return card(
    "Latency of deliveries",
    drawn(
      "Seconds from acceptance to delivery, by day",
      curves(() => ({
        unit: "s",
        log: true,
        labels: rows.map((/** @type {any} */ row) => row.date.slice(5)),
        series: names.map((name, place) => ({ name, tone: "cab"[place], values: rows.map((/** @type {any} */ row) => Math.max(row[name], 0.001)) })),
      })),
      [["median", "c"], ["p90", "a"], ["p99", "b"]],
    ),
  );
}

/** @param {any} summary */
function lastHop({ last_hop: rows }) {
  if (!rows?.length) return null;
  return card(
    "Waste and loss on the last hop",
    drawn(
      "Percent of forwarded messages that were never read, and of wanted messages that were missed, by day",
      curves(() => ({
        unit: "%",
        labels: rows.map((/** @type {any} */ row) => row.date.slice(5)),
        series: [
          { name: "waste", tone: "b", values: rows.map((/** @type {any} */ row) => (row.waste === null ? null : 100 * row.waste)) },
          { name: "loss", tone: "d", values: rows.map((/** @type {any} */ row) => (row.loss === null ? null : 100 * row.loss)) },
        ],
      })),
      [["waste", "b"], ["loss", "d"]],
    ),
  );
}

/** @param {any} summary */
function hours({ read_hours: values }) {
  if (!values?.length) return null;
  return card(
    "When people read",
    drawn("Reads by hour of the day", piles(() => ({ unit: "reads", tones: ["a"], bars: values.map((/** @type {number} */ value, /** @type {number} */ hour) => ({ label: `${hour}:00`, parts: [value] })) })), []),
  );
}

/** @param {any} summary */
const calendars = ({ calendar }) =>
  (calendar ?? []).map((/** @type {any} */ row) =>
    card(`When ${row.link || "an unnamed link"} is available`, drawn(`Chance of ${row.link} by hour of the week`, weekOf(row.hours), []), h("p", { class: "soft small" }, `${count(row.devices)} devices, local time`)),
  );

/** @param {any} summary */
function survival({ survival: rows }) {
  if (!rows?.length) return null;
  const names = rows.slice(0, 5);
  const minutes = [...new Set(names.flatMap((/** @type {any} */ row) => row.minutes))].sort((a, b) => a - b);
  const at = (/** @type {any} */ row, /** @type {number} */ minute) => {
    const place = row.minutes.findLastIndex((/** @type {number} */ one) => one <= minute);
    return place < 0 ? 1 : row.alive[place];
  };
  return card(
    "How long idle connections live",
    drawn(
      "Share of connections alive after minutes without traffic",
      curves(() => ({
        unit: "alive",
        labels: minutes.map((minute) => `${figure(minute)} min`),
        series: names.map((/** @type {any} */ row, /** @type {number} */ place) => ({ name: row.network, tone: TONES[place], values: minutes.map((minute) => at(row, minute)) })),
      })),
      names.map((/** @type {any} */ row, /** @type {number} */ place) => [row.network || "unnamed", TONES[place]]),
    ),
  );
}

/** @param {any} summary */
function usage({ usage: rows }) {
  if (!rows?.length) return null;
  const days = [...new Set(rows.map((/** @type {any} */ row) => row.date))].sort();
  const links = [...new Set(rows.map((/** @type {any} */ row) => row.link))].sort().slice(0, 5);
  const bytes = (/** @type {string} */ date, /** @type {string} */ link) => rows.find((/** @type {any} */ row) => row.date === date && row.link === link)?.bytes ?? 0;
  return card(
    "Traffic by link",
    drawn(
      "Megabytes by day and link",
      piles(() => ({ unit: "MB", tones: [...TONES], bars: days.map((date) => ({ label: date.slice(5), parts: links.map((link) => bytes(date, link) / 1e6) })) })),
      links.map((link, place) => [link || "unnamed", TONES[place]]),
    ),
  );
}

/** @param {HTMLElement} root */
export async function render(root) {
  const summary = await data("pipeline");
  if (!summary) {
    root.append(h("h1", null, "Tables"), h("p", null, "The pipeline has not run on this gateway's log yet: ", h("code", null, "lasthop pipeline run")));
    return;
  }
  const { totals, agreement } = summary;
  /** @type {[string, string][]} */
  const audited = agreement?.messages ? [["model agrees", `${((100 * agreement.agreed) / agreement.messages).toFixed(2)} %`]] : [];
  root.append(
    h("h1", null, "Tables"),
    h("p", { class: "soft" }, totals.first ? `Deliveries from ${totals.first} to ${totals.last}. ` : "No deliveries yet. ", "Written ", moment(summary.made_at), "."),
    numbers([
      ["deliveries", count(totals.accepted)],
      ["delivered", count(totals.delivered)],
      ["devices", count(totals.devices)],
      ["delivered twice", count(totals.duplicates)],
      ["out of order", count(totals.misordered)],
      ["sent", size(totals.bytes)],
      ...audited,
    ]),
    h("div", { class: "cards" }, outcomes(summary), latency(summary), lastHop(summary), hours(summary), usage(summary), survival(summary), ...calendars(summary)),
    agreement?.worst?.length
      ? h("div", { class: "cards" }, wide("Devices that nothing is learned from", table(["device", "first difference", "#alike", "#messages"], agreement.worst.map((/** @type {any} */ one) => [`${one.app}/${one.dev}`, one.difference, count(one.agreed), count(one.messages)]))))
      : "",
    summary.quarantine?.length
      ? h("div", { class: "cards" }, wide("In quarantine", table(["problem", "file", "#lines"], summary.quarantine.map((/** @type {any} */ row) => [row.problem, row.file, count(row.lines)]))))
      : "",
  );
}
