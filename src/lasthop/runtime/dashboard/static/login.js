/** Says why a login failed; the form works without this script too. */

/** @type {Record<string, string>} */
const REASONS = {
  unknown: "This token is unknown or was revoked.",
  "not-an-admin": "This credential may not administer the gateway: it needs the scope admin.",
};

const reason = REASONS[new URLSearchParams(location.search).get("problem") ?? ""];
const problem = document.getElementById("problem");
if (reason && problem) {
  problem.textContent = reason;
  problem.hidden = false;
}
