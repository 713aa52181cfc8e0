/** The list of devices, page by page: how each is connected, and how many messages wait for it. */

import { data } from "../api.js";
import { count, field, figure, h, moment, pill, span, table, to } from "../dom.js";

export const title = "Devices";

/** @param {any} row */
function contact({ info, lines }) {
  if (!info.in_contact) return info.lost_at ? h("span", { class: "soft" }, "away since ", moment(info.lost_at)) : pill("never connected");
  return (lines ?? []).map((/** @type {any} */ line) => pill(line.network ? `${line.link} (${line.network})` : line.link, "good"))[0] ?? pill("connected", "good");
}

/** @param {any} row */
function rowOf(row) {
  const { info, lines = [], limits = 0 } = row;
  const [line = {}] = lines;
  const more = lines.length > 1 ? ` and ${lines.length - 1} more` : "";
  return [
    to("device", [info.name]),
    info.user || h("span", { class: "soft" }, "–"),
    h("span", null, contact(row), more, line.carrier ? h("span", { class: "soft small" }, ` ${line.carrier}`) : null),
    info.epoch ? `${info.epoch}` : "–",
    count(info.open),
    line.heartbeat ? span(line.heartbeat) : "–",
    line.round_trip === undefined ? "–" : `${figure(line.round_trip)} ms`,
    limits ? to("device", [info.name], `${limits}`) : "–",
    info.subscriptions.length ? count(info.subscriptions.length) : "–",
  ];
}

/** @param {HTMLElement} root @param {string[]} path */
export async function render(root, [search = "", after = ""]) {
  const page = await data("devices", { search, after });
  const form = h(
    "form",
    {
      class: "inline",
      role: "search",
      onsubmit: (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const wanted = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("search"));
        location.hash = `#/devices/${encodeURIComponent(wanted)}`;
      },
    },
    field("Name contains", "search", { value: search, type: "search" }),
    h("button", { class: "quiet" }, "Find"),
  );
  root.append(
    h("h1", null, "Devices"),
    h("p", { class: "soft" }, `${count(page.total)} registered in this app.`),
    form,
    h(
      "section",
      { class: "card" },
      table(
        ["device", "user", "link", "#session", "#mailbox", "#heartbeat", "#round trip", "#budgets", "#topics"],
        page.devices.map(rowOf),
        search ? "No device has such a name." : "No device yet. Open /device, or start one: lasthop device run --name phone",
      ),
      page.next ? h("p", null, to("devices", [search, String(page.next)], "Next page")) : null,
    ),
  );
}
