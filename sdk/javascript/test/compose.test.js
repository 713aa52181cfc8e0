/** What the application says of a message, and what stands in its headers. */

import assert from "node:assert/strict";
import test from "node:test";

import { message } from "../src/compose.js";

test("a tolerated delay travels in milliseconds", () => {
  assert.equal(message("device:x", "body", { delayTolerance: 1.5 }).headers.tolerance, 1500);
  assert.equal(message("device:x", "body", {}).headers.tolerance, undefined);
  assert.equal(message("device:x", "body", { immediate: true }).headers.immediate, true);
});

for (const delayTolerance of [-1, NaN, 31 * 86_400 + 1, "a bit"]) {
  test(`${delayTolerance} is no delay`, () => {
    assert.throws(
      () => message("device:x", "body", { delayTolerance }),
      /a delayTolerance is 0 to 31 days, in seconds/,
    );
  });
}
