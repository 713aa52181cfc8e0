/** The list of the services that devices of the app offer. */

import { rest } from "../api.js";
import { count, h, pill, table, to, wide } from "../dom.js";

export const title = "Services";

/** @param {any} service */
export const named = (service) => `${service.name}@${service.version ?? "1"}`;

/** @param {any} offer */
export const presence = (offer) => (offer.in_contact ? pill(`${count(offer.in_contact)} of ${count(offer.providers)} in contact`, "good") : pill("all away", "warn"));

/** @param {HTMLElement} root */
export async function render(root) {
  const { services, more } = await rest("services");
  root.append(
    h("h1", null, "Services"),
    h("p", { class: "soft" }, "Services that devices offer: a request to a service goes to one of the devices that offer it."),
    h(
      "div",
      { class: "cards" },
      wide(
        "Offered",
        table(
          ["service", "", "operations", "about"],
          services.map((/** @type {any} */ offer) => [
            to("service", [named(offer.service)]),
            presence(offer),
            (offer.service.operations ?? []).map((/** @type {any} */ one) => one.name).join(", "),
            offer.service.about ?? "",
          ]),
          "No service yet: a device offers one.",
        ),
        more ? h("p", { class: "soft" }, "There are more than are listed.") : null,
      ),
    ),
  );
}
