/** The list of the app's groups and queues, with the numbers of members and of waiting messages. */

import { rest } from "../api.js";
import { count, h, moment, pill, span, table, to, wide } from "../dom.js";

export const title = "Groups";

/** @param {boolean} open */
const entry = (open) => (open ? pill("open", "good") : pill("by invitation"));

/** @param {any[]} groups */
const groupTable = (groups) =>
  table(
    ["group", "title", "", "made", "#members"],
    groups.map((one) => [to("group", ["groups", one.name], one.name), one.title, entry(one.open), moment(one.made_at), count(one.members)]),
    "No group yet: a device joins one, or PUT /v1/groups/NAME makes it.",
  );

/** @param {any[]} queues */
const queueTable = (queues) =>
  table(
    ["queue", "title", "", "#waiting", "#consumers", "#patience", "#at a time"],
    queues.map((one) => [
      to("group", ["queues", one.name], one.name),
      one.title,
      entry(one.open),
      count(one.waiting),
      count(one.consumers),
      span(one.patience),
      count(one.prefetch),
    ]),
    "No queue yet: PUT /v1/queues/NAME makes one.",
  );

/** @param {HTMLElement} root */
export async function render(root) {
  const [{ groups }, { queues }] = await Promise.all([rest("groups"), rest("queues")]);
  root.append(
    h("h1", null, "Groups and queues"),
    h("p", { class: "soft" }, "Every member of a group gets the group's messages; each message of a queue goes to one of its consumers."),
    h("div", { class: "cards" }, wide("Groups", groupTable(groups)), wide("Queues", queueTable(queues))),
  );
}
