/** The page's display of a run: a lost reply is not a success. */
import { expect, test } from "bun:test";
import { fateOf } from "../../src/page/app/gateway/admin.ts";
import { deliveries } from "../../src/page/app/words/en/views.ts";

test.each([
  ["succeeded", "sent", "succeeded", "tag good"],
  ["succeeded", "none", "succeeded", "tag good"],
  ["succeeded", "failed", "succeeded, reply failed", "tag bad"],
  ["succeeded", "unknown", "succeeded, reply unknown", "tag bad"],
  ["failed", "none", "failed", "tag bad"],
  ["running", "none", "running", "tag"],
])("the state of a %s run with reply %s is shown as %p", (state, reply, text, look) => {
  const fate = fateOf({ id: "r", state, reply });
  expect([deliveries.fate(fate), fate.look]).toEqual([text, look]);
});
