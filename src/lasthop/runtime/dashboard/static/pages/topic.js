/** The page of one topic: its subscribers with their terms, and the ranks of its undelivered messages. */

import { data } from "../api.js";
import { legend, picture, piles } from "../charts.js";
import { count, figure, h, table, to, wide } from "../dom.js";

export const title = "Topic";

/** @param {HTMLElement} root @param {string[]} path */
export async function render(root, [name = ""]) {
  const view = await data("topic", { name });
  const ranks = view.ranks ?? [];
  const total = ranks.reduce((/** @type {number} */ sum, /** @type {any} */ bar) => sum + bar.here + bar.there, 0);
  const histogram = picture(
    `Ranks of ${total} undelivered messages`,
    piles(() => ({
      unit: "messages",
      tones: ["a", "c"],
      bars: ranks.map((/** @type {any} */ bar) => ({ label: figure(bar.low), parts: [bar.here, bar.there] })),
    })),
    legend([["wait at the gateway", "a"], ["unread on devices", "c"]]),
  );
  root.append(
    h("h1", null, name),
    h("p", { class: "soft" }, `${count(view.total)} subscribers. `, to("send", [`topic:${name}`], "Publish to it")),
    h(
      "div",
      { class: "cards" },
      wide("Ranks of undelivered messages", total ? histogram.element : h("p", { class: "soft" }, "No message of this topic waits. Only subscriptions with terms hold messages back.")),
      wide(
        "Subscribers",
        table(
          ["device", "mode", "#max", "#threshold", "policy", "#unread on device", "#waiting at gateway"],
          view.subscribers.map((/** @type {any} */ one) => [
            to("device", [one.device]),
            one.ranked ? one.mode : "as it comes",
            one.max ?? "–",
            one.threshold ?? "–",
            one.policy ?? "–",
            one.unread ?? (one.ranked ? 0 : "–"),
            one.waiting ?? (one.ranked ? 0 : "–"),
          ]),
          "No device has subscribed.",
        ),
        view.total > view.subscribers.length ? h("p", { class: "soft" }, `The first ${view.subscribers.length}.`) : null,
      ),
    ),
  );
}
