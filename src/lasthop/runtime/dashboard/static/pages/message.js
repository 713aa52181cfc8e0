/** The page of one message: the state of each delivery, with the history of one of them as a picture. */

import { Refused, data, replyTo, rest, segment } from "../api.js";
import { picture } from "../charts.js";
import { card, count, field, h, moment, numbers, size, stateOf, table, to, wide } from "../dom.js";
import { storyInWords, storyPicture } from "../story.js";

export const title = "Message";

/** @param {string} [value] */
const finder = (value = "") =>
  h(
    "form",
    {
      class: "inline",
      role: "search",
      onsubmit: (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const id = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("id")).trim();
        location.hash = `#/message/${encodeURIComponent(id)}`;
      },
    },
    field("Message id", "id", { value, required: true, spellcheck: "false", autocomplete: "off" }),
    h("button", { class: "quiet" }, "Look it up"),
  );

/** @param {any} status @param {HTMLElement} said */
function actions(status, said) {
  if (!status.summary.open) return h("p", { class: "soft" }, "Every delivery has ended: nothing can be cancelled or replaced.");
  const act = async (/** @type {() => Promise<string>} */ what) => {
    try {
      said.textContent = await what();
    } catch (error) {
      said.textContent = error instanceof Error ? error.message : String(error);
    }
  };
  const cancel = async () => {
    const done = await rest(`messages/${status.id}`, { method: "DELETE" });
    return `${done.cancelled} deliveries cancelled; for ${done.too_late} it was too late.`;
  };
  const replace = async (/** @type {FormData} */ fields) => {
    const done = await rest(`messages/${status.id}`, { method: "PUT", body: { body: String(fields.get("body")) } });
    location.hash = `#/message/${done.id}`;
    return `Replaced for ${done.replaced} devices; for ${done.too_late} it was too late.`;
  };
  return h(
    "div",
    null,
    h("p", null, h("button", { type: "button", class: "quiet", onclick: () => act(cancel) }, "Cancel the deliveries that have not been sent")),
    h(
      "form",
      {
        class: "inline",
        onsubmit: (/** @type {SubmitEvent} */ event) => {
          event.preventDefault();
          const fields = new FormData(/** @type {HTMLFormElement} */ (event.target));
          void act(() => replace(fields));
        },
      },
      field("Replace the message by", "body", { required: true }),
      h("button", { class: "quiet" }, "Replace"),
    ),
  );
}

/** @param {any} status @param {string} device */
async function storyCard(status, device) {
  const story = await rest(`messages/${status.id}/explain`, { query: { device } });
  const drawing = picture(storyInWords(story), storyPicture(story));
  const words = table(
    ["when", "what", "why"],
    story.map((/** @type {any} */ told) => [told.time.slice(11), told.link ? `${told.what} over ${told.link}` : told.what, told.why]),
  );
  return wide(`History of the delivery to ${device}`, drawing.element, h("details", null, h("summary", null, "Show as a table"), words));
}

/** @param {any} status */
async function answerCard(status) {
  if (!status.summary.replies) return null;
  const text = await replyTo(status.id, 0);
  return card("The answer", h("pre", null, text.slice(0, 4000)));
}

/** @param {HTMLElement} root */
async function list(root) {
  const recent = await data("recent");
  root.append(
    h("h1", null, "Messages"),
    finder(),
    h(
      "div",
      { class: "cards" },
      wide(
        "Most recent messages",
        table(
          ["accepted", "message", "for", "from", "#size"],
          recent.map((/** @type {any} */ one) => [moment(one.at), to("message", [one.id], h("code", null, one.id)), one.to, one.source, size(one.size)]),
          "No message has been accepted since the gateway started.",
        ),
      ),
    ),
  );
}

/** @param {HTMLElement} root @param {string[]} path */
export async function render(root, [id = "", chosen = ""]) {
  if (!id) {
    await list(root);
    return;
  }
  const status = await rest(`messages/${segment(id)}`).catch((error) => {
    if (error instanceof Refused) root.append(h("h1", null, "Message"), finder(id));
    throw error;
  });
  const device = chosen || status.deliveries[0]?.device;
  const said = h("p", { role: "status", class: "small" });
  root.append(
    h("h1", null, "Message ", h("code", null, status.id)),
    h("p", { class: "soft" }, `For ${status.to}, from ${status.source}, accepted `, moment(status.accepted_at), "."),
    numbers([
      ["devices", count(status.summary.total)],
      ["still open", count(status.summary.open)],
      ["answers", count(status.summary.replies)],
      /** @type {[string, string][]} */
      ...Object.entries(status.summary.states).map(([state, many]) => /** @type {[string, string]} */ ([state.replaceAll("_", " "), count(many)])),
    ]),
    h(
      "div",
      { class: "cards" },
      device ? await storyCard(status, device) : null,
      wide(
        "Deliveries",
        table(
          ["device", "state", "since", "PAP state", "#attempts"],
          status.deliveries.map((/** @type {any} */ one) => [
            one.device ? to("message", [status.id, one.device], one.device) : "removed",
            stateOf(one.state),
            moment(one.changed_at),
            one.pap,
            one.attempts ?? 0,
          ]),
          "The message has no deliveries: no device matched its target when it was accepted.",
        ),
        status.more ? h("p", { class: "soft" }, "There are more than are listed.") : null,
      ),
      await answerCard(status),
      card("Cancel or replace", actions(status, said), said),
      card("Another message", finder()),
    ),
  );
}
