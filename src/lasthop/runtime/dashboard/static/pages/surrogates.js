/** The page of the surrogates, the classes that act for the devices of their apps: their states, and reloading them. */

import { rest, segment } from "../api.js";
import { card, count, h, numbers, pill, size, table } from "../dom.js";

export const title = "Surrogates";

/** @type {Record<string, string>} */
const STYLES = { ready: "good", starting: "warn", broken: "bad" };

/** @param {string} text @param {number} value @param {number} most @param {string} shown */
const share = (text, value, most, shown) =>
  h("p", null, `${text}: ${shown}`, h("meter", { min: 0, max: Math.max(1, most), value, high: 0.9 * most, "aria-label": `${text}: ${shown}` }));

/** @param {any} one */
function facts(one) {
  return [
    h("h3", null, h("code", null, one.place), " ", pill(one.state, STYLES[one.state])),
    one.reason ? h("p", { class: "problem" }, one.reason) : null,
    numbers([["restarts", count(one.restarts)], ["worker", one.pid === null ? "none" : String(one.pid)]]),
    share("Waiting messages", one.waiting, one.queue, `${count(one.waiting)} of ${count(one.queue)} messages`),
    share("State", one.state_bytes, one.state_limit, `${size(one.state_bytes)} of ${size(one.state_limit)}`),
    table(
      ["outcome of messages", "#since the start"],
      Object.entries(one.outcomes).map(([outcome, many]) => [outcome.replaceAll("_", " "), count(many)]),
      "The surrogate has handled no message since the gateway was started.",
    ),
    one.last_failure ? h("p", { class: "soft" }, `Its last failure: ${one.last_failure}`) : null,
  ];
}

/** @param {any} first */
function surrogateCard(first) {
  const shown = h("div", null, ...facts(first));
  const said = h("div", { role: "status" });
  const button = /** @type {HTMLButtonElement} */ (h("button", { class: "quiet", type: "button" }, "Reload"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await rest(`surrogates/${segment(first.app)}/reload`, { method: "POST" });
      // The new one takes over between two messages, a moment after it was loaded.
      const fresh = h("div", null, ...facts(await rest(`surrogates/${segment(first.app)}`)));
      shown.replaceChildren(...fresh.childNodes);
      said.replaceChildren(h("p", null, "The surrogate was reloaded."));
    } catch (error) {
      said.replaceChildren(h("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
    } finally {
      button.disabled = false;
    }
  });
  return card(first.app, shown, h("p", { class: "apart" }, button), said);
}

/** @param {HTMLElement} root */
export async function render(root) {
  const { surrogates } = await rest("surrogates");
  root.append(
    h("h1", null, "Surrogates"),
    h("p", { class: "soft" }, "A surrogate is a class that acts for the devices of its app: it handles every message to and from them, in a process of its own."),
    surrogates.length
      ? h("div", { class: "cards" }, ...surrogates.map(surrogateCard))
      : h("p", null, "No app has a surrogate: name a class in the settings, under [surrogates.APP]."),
  );
}
