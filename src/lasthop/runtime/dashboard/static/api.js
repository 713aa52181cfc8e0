/** The pages' requests to the gateway, with the rights of the person who has logged in, for one app. */

/** A refusal of the gateway, with its error message. */
export class Refused extends Error {
  /** @param {number} status @param {string} code @param {string} detail */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** @type {{app: string}} */
export const chosen = { app: "default" };

/**
 * @param {string} path @param {string} [method] @param {unknown} [body] as JSON, or as text of a `type`
 * @param {string} [type] @returns {Promise<Response>}
 */
async function ask(path, method = "GET", body = undefined, type = undefined) {
  const response = await fetch(`/dashboard/${path}`, {
    method,
    headers: { "x-app": chosen.app, "x-lasthop-dashboard": "1", ...(body === undefined ? {} : { "content-type": type ?? "application/json" }) },
    body: body === undefined ? undefined : type === undefined ? JSON.stringify(body) : String(body),
  });
  if (response.ok) return response;
  if (response.status === 401) location.assign("/dashboard/login");
  const said = await response.json().catch(() => null);
  throw new Refused(response.status, said?.error?.code ?? "unknown", said?.error?.detail ?? response.statusText);
}

/** @param {Record<string, string | number | undefined>} query */
function queryOf(query) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return pairs.length ? `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}` : "";
}

/**
 * Fetch data that only the dashboard shows.
 * @param {string} what @param {Record<string, string | number | undefined>} [query] @returns {Promise<any>}
 */
export const data = async (what, query = {}) => (await ask(`data/${what}${queryOf(query)}`)).json();

/**
 * Call the REST interface.
 * @param {string} path @param {{method?: string, body?: unknown, query?: Record<string, string | number | undefined>}} options
 * @returns {Promise<any>}
 */
export async function rest(path, { method, body, query = {} } = {}) {
  return (await ask(`v1/${path}${queryOf(query)}`, method, body)).json();
}

/**
 * Fetch a device's answer to a message, as it was sent.
 * @param {string} id @param {number} timeout seconds
 */
export const replyTo = async (id, timeout) => (await ask(`v1/messages/${id}/reply?timeout=${timeout}`)).text();

/**
 * Ask a service, and return its answer.
 * @param {string} name @param {string} operation @param {{body: string, type: string, timeout: number}} request
 */
export const askService = async (name, operation, { body, type, timeout }) =>
  (await ask(`v1/services/${segment(name)}/${segment(operation)}?timeout=${timeout}`, "POST", body, type)).text();

/** @param {string} part */
export const segment = encodeURIComponent;
