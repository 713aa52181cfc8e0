/** The overview page: live throughput and latency, recent events and recent messages. */

import { data } from "../api.js";
import { curves, legend, picture } from "../charts.js";
import { card, count, figure, h, moment, numbers, size, table, to, wide } from "../dom.js";
import { live } from "../live.js";

export const title = "Overview";

const EVENTS = 14;
const REFRESH = 5;

/** @typedef {import("../live.js").Sample} Sample */

/** @param {Sample[]} samples */
const clockOf = (samples) => samples.map(({ at }) => new Date(at / 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }));

/** @param {Sample} sample */
const otherEnds = ({ ended }) => Object.entries(ended).reduce((sum, [state, rate]) => (state === "delivered" ? sum : sum + rate), 0);

/** @param {Sample | undefined} now */
const figures = (now) =>
  numbers([
    ["accepted per second", now ? figure(now.accepted) : "–"],
    ["delivered per second", now ? figure(now.ended.delivered ?? 0) : "–"],
    ["median latency", now?.latency ? `${figure(now.latency[0])} ms` : "–"],
    ["devices in contact", now ? count(now.connections) : "–"],
    ["devices", now ? count(now.devices) : "–"],
    ["messages under way", now ? count(now.messages) : "–"],
    ["mean commit time", now?.commit_ms ? `${figure(now.commit_ms)} ms` : "–"],
  ]);

/** @param {import("../live.js").Happened} event */
function eventLine({ at, kind, device, message, reason, link }) {
  const words = [kind.replaceAll("_", " "), link ? ` over ${link}` : "", reason ? `: ${reason}` : ""].join("");
  return h(
    "li",
    null,
    h("span", { class: "soft" }, moment(at)),
    " ",
    words,
    device ? h("span", null, " · ", to("device", [device])) : null,
    message ? h("span", null, " · ", to("message", device ? [message, device] : [message], message.slice(-8))) : null,
  );
}

/** @param {any[]} recent */
const recentTable = (recent) =>
  table(
    ["accepted", "message", "for", "from", "#size"],
    recent.slice(0, 12).map((one) => [
      moment(one.at),
      to("message", [one.id], h("code", null, one.id.slice(0, 16))),
      one.to,
      one.source,
      size(one.size),
    ]),
    "No message has been accepted since the gateway started.",
  );

/** @param {HTMLElement} root */
export async function render(root) {
  const top = h("div");
  const ticker = h("ul", { class: "ticker" });
  const recent = h("div");
  /** @type {import("../live.js").Happened[]} */
  let events = [];
  const throughput = picture(
    "Messages accepted and delivered per second",
    curves(() => ({
      unit: "per second",
      slots: Math.max(30, Math.min(120, live.samples.length)),
      labels: clockOf(live.samples.slice(-120)),
      series: [
        { name: "accepted", tone: "a", values: live.samples.slice(-120).map((one) => one.accepted) },
        { name: "delivered", tone: "c", values: live.samples.slice(-120).map((one) => one.ended.delivered ?? 0) },
        { name: "other outcomes", tone: "d", values: live.samples.slice(-120).map(otherEnds) },
      ],
    })),
    legend([["accepted", "a"], ["delivered", "c"], ["other outcomes", "d"]]),
  );
  const latency = picture(
    "Latency from acceptance to delivery",
    curves(() => ({
      unit: "ms",
      log: true,
      slots: Math.max(30, Math.min(120, live.samples.length)),
      labels: clockOf(live.samples.slice(-120)),
      series: [0, 1, 2].map((place) => ({
        name: "",
        tone: "acb"[place],
        values: live.samples.slice(-120).map((one) => (one.latency ? Math.max(one.latency[place], 0.1) : null)),
      })),
    })),
    legend([["median", "a"], ["p90", "c"], ["p99", "b"]]),
  );
  let until = 0;
  const update = async (/** @type {Sample[]} */ fresh) => {
    const now = live.samples.at(-1);
    top.replaceChildren(figures(now));
    throughput.redraw();
    latency.redraw();
    if (now) throughput.describe(`${figure(now.accepted)} messages accepted and ${figure(now.ended.delivered ?? 0)} delivered in the last second`);
    const news = fresh.flatMap((one) => one.events ?? []);
    if (news.length) {
      events = [...news.reverse(), ...events].slice(0, EVENTS);
      ticker.replaceChildren(...events.map(eventLine));
    }
    if (--until <= 0) {
      until = REFRESH;
      recent.replaceChildren(recentTable(await data("recent")));
    }
  };
  root.append(
    h("h1", null, "Overview"),
    top,
    h(
      "div",
      { class: "cards" },
      card("Throughput", throughput.element),
      card("Latency of deliveries", latency.element),
      wide("Most recent messages", recent),
      wide("Events (a few of each second)", h("div", { role: "log", "aria-live": "off", "aria-label": "Events" }, ticker)),
    ),
  );
  await update(live.samples);
  return live.onSamples((fresh) => void update(fresh));
}
