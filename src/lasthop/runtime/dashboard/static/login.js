/** Says why a login did not work; without it the form works all the same. */

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
