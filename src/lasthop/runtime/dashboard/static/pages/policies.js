/** The versions of the learned policy, each compared with the version in force before it. */

import { data } from "../api.js";
import { legend, picture, piles } from "../charts.js";
import { card, count, figure, h, moment, pill, table, wide } from "../dom.js";

export const title = "Policies";

/** @param {number | undefined} value */
const percent = (value) => (value === undefined ? "–" : `${figure(100 * value)} %`);

/** @param {any[]} versions */
function beforeAndAfter(versions) {
  const judged = versions.filter(({ held_out: held }) => held?.waste_and_loss !== undefined).reverse();
  if (!judged.length) return null;
  const drawing = picture(
    "Waste and loss on held-out days, under the policy that was in force and under the learned one",
    piles(() => ({
      unit: "%",
      tones: ["e", "c"],
      bars: judged.flatMap(({ version, held_out: held }) => [
        { label: "before", parts: [100 * (held.live_waste_and_loss ?? 0), 0] },
        { label: version.slice(0, 13), parts: [0, 100 * held.waste_and_loss] },
      ]),
    })),
    legend([["in force before", "e"], ["learned", "c"]]),
  );
  return card("Waste and loss, before and after", drawing.element, h("p", { class: "soft small" }, "On days that the version was not learned from. What the chosen policies gain untaught is part of the difference."));
}

/** @param {any} trial */
function onTrial(trial) {
  if (!trial) return null;
  const running = trial.state === "running";
  return card(
    running ? "On trial" : "Last trial",
    h("p", null, h("code", null, trial.version), " ", pill(running ? `${figure(trial.percent)} % of devices` : trial.state, trial.state === "taken back" ? "bad" : "good")),
    h("p", null, `Since ${moment(trial.since)}`, trial.ended_at ? `, until ${moment(trial.ended_at)}: ${trial.reason}.` : "."),
    h("p", { class: "soft small" }, running ? "Live loss, and how to end the trial: lasthop policy status, promote, take-back." : "The next version that is learned is tried first, too."),
  );
}

/** @param {HTMLElement} root */
export async function render(root) {
  const page = await data("policies");
  const { versions } = page;
  root.append(
    h("h1", null, "Policies"),
    h("p", { class: "soft" }, "In force: ", h("code", null, page.in_force || "built in"), `. Versions kept: ${count(page.total)}.`),
    h(
      "div",
      { class: "cards" },
      onTrial(page.trial),
      beforeAndAfter(versions),
      wide(
        "Versions, newest first",
        table(
          ["version", "made", "learned from", "#events", "#devices", "#networks", "#before", "#after", ""],
          versions.map((/** @type {any} */ one) => [
            h("span", null, h("code", null, one.version), " ", one.in_force ? pill("in force", "good") : ""),
            one.made_at ? moment(one.made_at) : "–",
            one.first_day ? `${one.first_day} to ${one.last_day}` : "–",
            count(one.events ?? 0),
            count(one.devices ?? 0),
            count(one.networks ?? 0),
            percent(one.held_out?.live_waste_and_loss),
            percent(one.held_out?.waste_and_loss),
            one.problem ? h("span", { class: "bad" }, one.problem) : (one.note ?? ""),
          ]),
          "Nothing was learned yet: run lasthop pipeline learn. Until then the built-in policy applies.",
        ),
      ),
    ),
  );
}
