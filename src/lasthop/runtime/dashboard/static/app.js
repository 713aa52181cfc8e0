/** The frame around the pages: chooses the page and the app, and shows whether the live samples arrive. */

import { chosen, data } from "./api.js";
import { h } from "./dom.js";
import { live } from "./live.js";
import * as device from "./pages/device.js";
import * as devices from "./pages/devices.js";
import * as group from "./pages/group.js";
import * as groups from "./pages/groups.js";
import * as links from "./pages/links.js";
import * as message from "./pages/message.js";
import * as overview from "./pages/overview.js";
import * as pipeline from "./pages/pipeline.js";
import * as policies from "./pages/policies.js";
import * as send from "./pages/send.js";
import * as service from "./pages/service.js";
import * as services from "./pages/services.js";
import * as surrogates from "./pages/surrogates.js";
import * as topic from "./pages/topic.js";
import * as topics from "./pages/topics.js";

/**
 * @typedef {object} Page
 * @property {string} title
 * @property {(root: HTMLElement, path: string[]) => Promise<void | (() => void)>} render Draws into
 *   `root`; returns what is to be done when another page is shown.
 */

/** @type {[string, string, Page][]} The path, the name in the navigation (none: not there), the page. */
const PAGES = [
  ["", "Overview", overview],
  ["devices", "Devices", devices],
  ["device", "", device],
  ["topics", "Topics", topics],
  ["topic", "", topic],
  ["groups", "Groups", groups],
  ["group", "", group],
  ["services", "Services", services],
  ["service", "", service],
  ["surrogates", "Surrogates", surrogates],
  ["links", "Channels", links],
  ["message", "Messages", message],
  ["send", "Send", send],
  ["policies", "Policies", policies],
  ["pipeline", "Tables", pipeline],
];

/** @type {Record<string, string>} Pages that belong to another in the navigation. */
const BELONGS = { device: "devices", topic: "topics", group: "groups", service: "services" };

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
const picker = /** @type {HTMLSelectElement} */ (document.getElementById("app"));

/** @type {(() => void) | void} */
let leave;
let shown = 0;

async function show() {
  const [name = "", ...path] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const [, , page] = PAGES.find(([path]) => path === name) ?? PAGES[0];
  const turn = ++shown;
  leave?.();
  leave = undefined;
  document.title = `${page.title} · lasthop`;
  for (const link of document.querySelectorAll("nav.pages a")) {
    const here = link.getAttribute("href") === `#/${BELONGS[name] ?? name}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const root = h("div");
  try {
    const cleanUp = await page.render(root, path);
    if (turn === shown) leave = cleanUp;
    else cleanUp?.();
  } catch (error) {
    if (!root.querySelector("h1")) root.append(h("h1", null, page.title));
    root.append(h("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
  }
  if (turn !== shown) return;
  main.replaceChildren(root);
}

async function begin() {
  const list = /** @type {HTMLElement} */ (document.getElementById("pages"));
  for (const [path, name] of PAGES) if (name) list.append(h("li", null, h("a", { href: `#/${path}` }, name)));
  chosen.app = localStorage.getItem("lasthop app") ?? "default";
  const about = await data("about").catch(async () => {
    chosen.app = "default";
    return data("about");
  });
  const apps = [...new Set([about.app, ...about.apps])].sort();
  picker.append(...apps.map((app) => h("option", { value: app, selected: app === chosen.app }, app)));
  picker.addEventListener("change", () => {
    chosen.app = picker.value;
    localStorage.setItem("lasthop app", picker.value);
    void show();
  });
  const out = /** @type {HTMLFormElement} */ (document.getElementById("logout"));
  out.hidden = about.who === "anonymous";
  live.onState((connected) => {
    status.textContent = connected ? "live" : "not connected";
    status.className = `pill ${connected ? "good" : "bad"}`;
  });
  addEventListener("hashchange", async () => {
    await show();
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  });
  await show();
}

void begin();
