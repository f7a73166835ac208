/** Values of random schemas from the embedded model: every one fits. `bun bench/schemas.ts` requests 200 of each. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { startHearth, type Hearth } from "./hearth.ts";
import { askForSchemas } from "./schema-answers.ts";

setDefaultTimeout(300_000);

const seeds = Array.from({ length: 20 }, (_, i) => 1000 + i);

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
});
afterAll(() => hearth.stop());

test("POST /api/chat format: 20 random schemas, 20 answers that fit", async () => {
  expect(await askForSchemas(hearth, "format", seeds)).toEqual([]);
});

test("POST /api/chat tool_choice: 20 random schemas, 20 calls whose arguments fit", async () => {
  expect(await askForSchemas(hearth, "tool_choice", seeds)).toEqual([]);
});
