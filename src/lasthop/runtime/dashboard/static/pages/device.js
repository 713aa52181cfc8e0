/** The page of one device: its channels, its session, its mailbox and its budgets. */

import { data, rest, segment } from "../api.js";
import { card, count, figure, h, moment, numbers, pill, size, span, stateOf, table, to, wide } from "../dom.js";

export const title = "Device";

/** @param {any[]} lines */
const channels = (lines) =>
  table(
    ["link", "network", "carried by", "#round trip", "#heartbeat"],
    lines.map((line) => [
      h("span", null, pill(line.link, "good"), line.sending ? " in use" : ""),
      line.network || "–",
      line.carrier || "–",
      line.round_trip === undefined ? "–" : `${figure(line.round_trip)} ms`,
      line.heartbeat === undefined ? "–" : span(line.heartbeat),
    ]),
    "The device is not in contact.",
  );

/** @param {any} view */
const mailbox = (view) =>
  table(
    ["message", "state", "since", "topic", "#priority", "#size", "#attempts"],
    view.mailbox.map((/** @type {any} */ mail) => [
      h("span", null, to("message", [mail.id, view.info.name], h("code", null, mail.id.slice(0, 16))), mail.title ? ` ${mail.title}` : ""),
      stateOf(mail.state),
      moment(mail.changed_at),
      mail.topic ? to("topic", [mail.topic]) : "–",
      mail.priority,
      size(mail.size),
      mail.attempts ?? 0,
    ]),
    "The mailbox is empty: all deliveries to this device have ended.",
  );

/** @param {any} usage */
function budget({ limit, used, reserved, until, shared }) {
  const { amount, measure, period, queues = [], link } = limit;
  // Money is counted in millionths.
  const show = (/** @type {number} */ value) => (measure === "money" ? figure(value / 1e6) : measure === "bytes" ? size(value) : count(value));
  const name = `${measure} per ${period}${queues.length ? ` of ${queues.join(", ")}` : ""}${link ? ` over ${link}` : ""}`;
  return [
    h("span", null, name, shared ? " (shared by all devices)" : ""),
    h("meter", { min: 0, max: amount, value: used, "aria-label": `${show(used)} of ${show(amount)} used` }),
    `${show(used)} of ${show(amount)}`,
    reserved ? show(reserved) : "–",
    moment(until),
  ];
}

/** @param {any[]} subscriptions */
const subscribed = (subscriptions) =>
  table(
    ["topic", "mode", "#max", "#threshold", "policy", "#unread on device", "#waiting at gateway"],
    subscriptions.map((one) => [
      to("topic", [one.topic]),
      one.terms ? (one.terms.mode ?? "on-demand") : "as it comes",
      one.terms?.max ?? "–",
      one.terms?.threshold ?? "–",
      one.policy ?? "–",
      one.unread ?? "–",
      one.waiting ?? "–",
    ]),
    "The device has no subscriptions.",
  );

/** @param {HTMLElement} root @param {string[]} path */
export async function render(root, [name = ""]) {
  const of = `devices/${segment(name)}`;
  const [view, budgets, { subscriptions }] = await Promise.all([
    data("device", { name }),
    rest(`${of}/budgets`),
    rest(`${of}/subscriptions`),
  ]);
  const { info } = view;
  root.append(
    h("h1", null, info.name, " ", info.in_contact ? pill("in contact", "good") : pill("away")),
    h(
      "p",
      { class: "soft" },
      info.user ? `User ${info.user}. ` : "",
      "Registered ",
      moment(info.registered_at),
      `. Zone ${info.zone}. `,
      info.lost_at ? h("span", null, "Disconnected ", moment(info.lost_at), ". ") : "",
      info.token_used_at ? h("span", null, "Token last used ", moment(info.token_used_at), ". ") : "",
      info.token_expires_at ? h("span", null, "Token expires ", moment(info.token_expires_at), ". ") : "",
      to("send", [`device:${info.name}`], "Send a message to it"),
    ),
    numbers([
      ["in its mailbox", count(view.mailbox_size)],
      ["under way", count(view.in_flight)],
      ["received so far", count(view.received)],
      ["delivered so far", count(view.delivered)],
      ["sent by the device", count(view.inbound)],
      ["session, epoch", count(info.epoch)],
      ["window, messages", count(view.window[0])],
    ]),
    h(
      "div",
      { class: "cards" },
      wide("Channels", channels(view.lines)),
      wide("Mailbox", mailbox(view), view.mailbox_size > view.mailbox.length ? h("p", { class: "soft" }, `The first ${view.mailbox.length} of ${count(view.mailbox_size)}.`) : null),
      wide(
        "Budgets",
        table(["limit", "", "#used", "#reserved", "until"], budgets.limits.map(budget), "The device has no budgets."),
        budgets.held ? h("p", { class: "warn" }, `${count(budgets.held)} messages wait for a link, a budget or a better time.`) : null,
      ),
      wide("Subscriptions", subscribed(subscriptions)),
      Object.keys(info.context).length ? card("Context reported by the device", h("pre", null, JSON.stringify(info.context, null, 2))) : null,
      info.routes?.length ? card("Reached over the air", h("pre", null, JSON.stringify(info.routes, null, 2))) : null,
    ),
  );
}
