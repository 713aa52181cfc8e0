/** The list of the app's topics, with the numbers of their subscribers. */

import { data } from "../api.js";
import { count, h, pill, table, to } from "../dom.js";

export const title = "Topics";

/** @param {HTMLElement} root @param {string[]} path */
export async function render(root, [after = ""]) {
  const page = await data("topics", { after });
  root.append(
    h("h1", null, "Topics"),
    h("p", { class: "soft" }, `${count(page.total)} topics are advertised or have subscribers.`),
    h(
      "section",
      { class: "card" },
      table(
        ["topic", "title", "", "#subscribers"],
        page.topics.map((/** @type {any} */ one) => [
          to("topic", [one.topic]),
          one.title ?? "",
          one.advertised ? pill("advertised", "good") : "",
          count(one.subscribers),
        ]),
        "No topic yet: subscribe a device, or advertise one with lasthop topic advertise NAME",
      ),
      page.next ? h("p", null, to("topics", [page.next], "Next page")) : null,
    ),
  );
}
