/** One topic: its subscribers with their terms, and what the messages under way are worth. */

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
    `Ranks of ${total} messages under way`,
    piles(() => ({
      unit: "messages",
      tones: ["a", "c"],
      bars: ranks.map((/** @type {any} */ bar) => ({ label: figure(bar.low), parts: [bar.here, bar.there] })),
    })),
    legend([["wait at the gateway", "a"], ["kept on devices, unread", "c"]]),
  );
  root.append(
    h("h1", null, name),
    h("p", { class: "soft" }, `${count(view.total)} subscribers. `, to("send", [`topic:${name}`], "Publish to it")),
    h(
      "div",
      { class: "cards" },
      wide("Ranks of what is under way", total ? histogram.element : h("p", { class: "soft" }, "Nothing of this topic waits anywhere. Only subscriptions with terms keep messages back.")),
      wide(
        "Subscribers",
        table(
          ["device", "mode", "#max", "#threshold", "policy", "#unread there", "#waiting here"],
          view.subscribers.map((/** @type {any} */ one) => [
            to("device", [one.device]),
            one.ranked ? one.mode : "as it comes",
            one.max ?? "–",
            one.threshold ?? "–",
            one.policy ?? "–",
            one.unread ?? (one.ranked ? 0 : "–"),
            one.waiting ?? (one.ranked ? 0 : "–"),
          ]),
          "Nobody has subscribed.",
        ),
        view.total > view.subscribers.length ? h("p", { class: "soft" }, `The first ${view.subscribers.length}.`) : null,
      ),
    ),
  );
}
