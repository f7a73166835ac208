/** The `@anthropic-ai/sdk` npm client against the real server and the embedded model. */
import { afterAll, beforeAll, setDefaultTimeout, test } from "bun:test";
import { CHECKS } from "../clients/anthropic-client.ts";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
});
afterAll(() => hearth.stop());

for (const [name, check] of Object.entries(CHECKS)) {
  test(`anthropic client: ${name}`, () => check({ url: hearth.url, model: "hearth:latest" }));
}
