/** One service: its operations, who offers it, and a form to ask it. */

import { askService, rest, segment } from "../api.js";
import { card, count, h, numbers, table, to, wide } from "../dom.js";
import { doing } from "../forms.js";
import { presence } from "./services.js";

export const title = "Service";

const PATIENCE = 60;

/** @param {any[]} operations */
const operationTable = (operations) =>
  table(
    ["operation", "about", "takes", "gives"],
    operations.map((one) => [h("code", null, one.name), one.about ?? "", one.takes ?? "", one.gives || "no answer"]),
    "The service has no operations.",
  );

/** @param {string} name @param {any[]} operations */
function askCard(name, operations) {
  const said = h("div", { role: "status" });
  const form = h(
    "form",
    { class: "stack" },
    h("label", null, "Operation", h("select", { name: "operation" }, ...operations.map((one) => h("option", { value: one.name }, one.name)))),
    h("label", null, "Request", h("textarea", { name: "body" })),
    h("div", null, h("button", null, "Ask")),
  );
  doing(form, said, async (fields) => {
    const operation = String(fields.get("operation"));
    const takes = operations.find((one) => one.name === operation)?.takes;
    said.replaceChildren(h("p", null, "Asked. Waiting for the answer …"));
    const answer = await askService(name, operation, { body: String(fields.get("body")), type: takes?.includes("/") ? takes : "text/plain; charset=utf-8", timeout: PATIENCE });
    said.replaceChildren(h("p", null, "The service answered:"), h("pre", null, answer.slice(0, 4000)));
  });
  return card("Ask the service", form, said);
}

/** @param {HTMLElement} root @param {string[]} path */
export async function render(root, [name = ""]) {
  const { services } = await rest(`services/${segment(name)}`);
  const offer = services[0];
  const operations = offer.service.operations ?? [];
  root.append(
    h("h1", null, name, " ", presence(offer)),
    h("p", { class: "soft" }, offer.service.about ?? ""),
    numbers([["devices that offer it", count(offer.providers)], ["of them in contact", count(offer.in_contact)], ["operations", count(operations.length)]]),
    h(
      "div",
      { class: "cards" },
      wide("Operations", operationTable(operations)),
      card(
        "Offered by",
        table(["device"], offer.devices.map((/** @type {string} */ device) => [to("device", [device])])),
        offer.providers > offer.devices.length ? h("p", { class: "soft" }, `and ${count(offer.providers - offer.devices.length)} more`) : null,
      ),
      operations.length ? askCard(name, operations) : null,
    ),
  );
}
