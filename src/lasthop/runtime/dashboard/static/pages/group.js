/** One group or queue, with the devices that belong to it. */

import { rest, segment } from "../api.js";
import { count, h, moment, numbers, pill, span, table, to, wide } from "../dom.js";

export const title = "Group";

/** @param {any} view @param {boolean} queue */
const figures = (view, queue) =>
  numbers(
    queue
      ? [["waiting", count(view.waiting)], ["consumers", count(view.consumers)], ["patience", span(view.patience)], ["at a time", count(view.prefetch)]]
      : [["members", count(view.members)]],
  );

/** @param {any[]} devices @param {boolean} queue */
const members = (devices, queue) =>
  queue
    ? table(
        ["consumer", "", "#holding"],
        devices.map((one) => [to("device", [one.device]), one.in_contact ? pill("in contact", "good") : pill("away"), count(one.holding)]),
        "The queue has no consumers.",
      )
    : table(["member"], devices.map((name) => [to("device", [name])]), "The group has no members.");

/** @param {HTMLElement} root @param {string[]} path */
export async function render(root, [kind = "groups", name = ""]) {
  const queue = kind === "queues";
  const view = await rest(`${queue ? "queues" : "groups"}/${segment(name)}`);
  root.append(
    h("h1", null, view.name),
    h(
      "p",
      { class: "soft" },
      `${view.title ? `${view.title}. ` : ""}${queue ? "A queue" : "A group"}, made `,
      moment(view.made_at),
      view.open ? "; devices may join by themselves. " : "; only administrators add devices. ",
      to("send", [`${queue ? "queue" : "group"}:${view.name}`], "Send to it"),
    ),
    figures(view, queue),
    h("div", { class: "cards" }, wide(queue ? "Consumers" : "Members", members(view.devices ?? [], queue), view.more ? h("p", { class: "soft" }, "There are more than are listed.") : null)),
  );
}
