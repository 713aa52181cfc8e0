/** A lasthop device for Node: its inbox is a file, or memory. */

import { Device } from "./device.js";
import { FileInbox } from "./inbox/file.js";
import { MemoryInbox } from "./inbox/memory.js";
import { NodeWebSocket } from "./node/websocket.js";

export { Device } from "./device.js";
export { LasthopError, MessageRefused } from "./errors.js";
export { MessageHandle, Status } from "./handle.js";
export { FileInbox } from "./inbox/file.js";
export { MemoryInbox } from "./inbox/memory.js";
export { Message } from "./message.js";
export { Handling, Reliability } from "./wire/frames.js";

/**
 * Open a device and start to dial, without waiting for the gateway (`device.contact()` waits).
 * `inbox` is the path of a file, or an inbox; without one, messages are kept in memory only.
 * @param {Omit<import("./device.js").DeviceOptions, "inbox" | "WebSocket"> & {
 *   inbox?: string | import("./inbox/memory.js").Inbox,
 *   WebSocket?: import("./channel.js").SocketClass,
 * }} options
 */
export async function connect({ inbox, WebSocket = NodeWebSocket, ...options }) {
  const memory = typeof inbox === "string" ? new FileInbox(inbox) : inbox ?? new MemoryInbox();
  return Device.open({ ...options, inbox: memory, WebSocket });
}
