/** The `ollama` npm client against the real server and the embedded model. */
import { afterAll, beforeAll, setDefaultTimeout, test } from "bun:test";
import { CHECKS } from "../clients/ollama-client.ts";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(60_000);

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
});
afterAll(() => hearth.stop());

for (const [name, check] of Object.entries(CHECKS)) {
  test(`ollama client: ${name}`, () => check({ url: hearth.url, model: "hearth:latest" }));
}
