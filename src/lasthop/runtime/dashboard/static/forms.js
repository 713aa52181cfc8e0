/** Forms that act when they are submitted. */

import { h } from "./dom.js";

/**
 * Call `act` when the form is submitted, and show a failure in `said`.
 * @param {HTMLElement} form @param {HTMLElement} said @param {(fields: FormData) => Promise<void>} act
 */
export function doing(form, said, act) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = /** @type {HTMLButtonElement | null} */ (form.querySelector("button"));
    if (button) button.disabled = true;
    try {
      await act(new FormData(/** @type {HTMLFormElement} */ (form)));
    } catch (error) {
      said.replaceChildren(h("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
    } finally {
      if (button) button.disabled = false;
    }
  });
  return form;
}
