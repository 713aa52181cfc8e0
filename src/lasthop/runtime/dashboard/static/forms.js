/** Forms that do something. */

import { h } from "./dom.js";

/**
 * A form that does something, and says what came of it.
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
