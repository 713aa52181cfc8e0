/** A lasthop device for browsers and hybrid apps. Node has `node.js`, with the same names. */

import { Device } from "./device.js";
import { IndexedDbInbox } from "./inbox/indexeddb.js";
import { MemoryInbox } from "./inbox/memory.js";

export { Device } from "./device.js";
export { LasthopError, MessageRefused } from "./errors.js";
export { MessageHandle, Status } from "./handle.js";
export { IndexedDbInbox } from "./inbox/indexeddb.js";
export { MemoryInbox } from "./inbox/memory.js";
export { Message } from "./message.js";
export { Handling, Reliability } from "./wire/frames.js";

/**
 * @typedef {Omit<import("./device.js").DeviceOptions, "inbox" | "WebSocket"> & {
 *   inbox?: "indexeddb" | "memory" | import("./inbox/memory.js").Inbox,
 *   WebSocket?: import("./channel.js").SocketClass,
 * }} ConnectOptions
 */

/**
 * Open a device and start to dial, without waiting for the gateway (`device.contact()` waits). The
 * inbox is kept in IndexedDB, under the names of the app and the device, unless `inbox` names another.
 * @param {ConnectOptions} options
 */
export async function connect(options) {
  const { inbox = "indexeddb", ...rest } = options;
  let memory;
  if (inbox === "memory") memory = new MemoryInbox();
  else if (inbox === "indexeddb") memory = await IndexedDbInbox.open(`${options.app}/${options.name}`);
  else memory = inbox;
  /** @type {import("./channel.js").SocketClass} */
  const WebSocket = options.WebSocket ?? /** @type {any} */ (globalThis.WebSocket);
  const device = await Device.open({ ...rest, inbox: memory, WebSocket });
  followBrowser(device);
  return device;
}

/**
 * Dial at once when the browser's network comes back, and when the user returns to the page.
 * @param {Device} device
 */
function followBrowser(device) {
  if (typeof window === "undefined") return;
  const online = () => device.hurry();
  const shown = () => document.visibilityState === "visible" && device.hurry();
  window.addEventListener("online", online);
  document.addEventListener("visibilitychange", shown);
  device.onContact(() => {
    if (!device.closed) return;
    window.removeEventListener("online", online);
    document.removeEventListener("visibilitychange", shown);
  });
}
