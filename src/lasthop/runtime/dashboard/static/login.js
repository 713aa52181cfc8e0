/** Says why a login failed, and where else one can sign in; the form works without this script too. */

/** @type {Record<string, string>} */
const REASONS = {
  unknown: "This token is unknown or was revoked.",
  "not-an-admin": "This credential may not administer the gateway: it needs the scope admin.",
  "no-admin-role": "You have signed in, but you are no administrator of this gateway.",
  "issuer-away": "The place where you sign in cannot be reached. Try again later, or use a token.",
  refused: "You could not be signed in. Try again; the gateway's log says why.",
};

const asked = new URLSearchParams(location.search);
const reason = REASONS[asked.get("problem") ?? ""];
const problem = document.getElementById("problem");
if (reason && problem) {
  problem.textContent = reason;
  problem.hidden = false;
}

/**
 * @param {string} href
 * @param {string} text
 * @returns {HTMLElement}
 */
function link(href, text) {
  const item = document.createElement("p");
  const anchor = document.createElement("a");
  anchor.href = href;
  anchor.textContent = text;
  item.append(anchor);
  return item;
}

async function offer() {
  const place = document.getElementById("issuers");
  const answer = await fetch("/dashboard/sign-in");
  if (!answer.ok || !place) return;
  /** @type {string[]} */
  const issuers = (await answer.json()).issuers;
  const left = asked.get("left");
  if (left && issuers.includes(left)) {
    place.append(link(`/dashboard/sign-in/out?with=${encodeURIComponent(left)}`, `Sign out of ${left} too`));
  }
  for (const name of issuers) {
    place.append(link(`/dashboard/sign-in?with=${encodeURIComponent(name)}`, `Sign in with ${name}`));
  }
  place.hidden = issuers.length === 0;
}

void offer();
