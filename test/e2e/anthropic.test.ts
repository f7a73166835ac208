/** The `@anthropic-ai/sdk` npm client against the real server and the embedded model. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { CHECKS } from "../clients/anthropic-client.ts";
import { NEVER_ENDING } from "../clients/target.ts";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth({ env: { HEARTH_NUM_PARALLEL: "1" } }); // a single slot reveals a request that keeps it
});
afterAll(() => hearth.stop());

for (const [name, check] of Object.entries(CHECKS)) {
  test(`anthropic client: ${name}`, () => check({ url: hearth.url, model: "hearth:latest" }));
}

test("a runner that dies during an answer ends the stream with an error event, and the next request is answered", async () => {
  const client = new Anthropic({ baseURL: hearth.url, apiKey: "any", maxRetries: 0 });
  const said = { model: "hearth", messages: [{ role: "user", content: "hi" }] } as const;
  const endless = {
    ...said,
    max_tokens: 100_000,
    output_config: { format: { type: "json_schema", schema: NEVER_ENDING } },
  } as const;
  const stream = await client.messages.create({ ...endless, messages: [...said.messages], stream: true });
  const read = async (): Promise<void> => {
    for await (const event of stream) {
      if (event.type !== "content_block_start") continue;
      for (const pid of await hearth.runnerPids()) process.kill(pid, "SIGKILL");
    }
  };
  const error = await read().catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(Anthropic.APIError);
  expect(error).toMatchObject({ type: "api_error", message: expect.stringContaining("unexpectedly stopped") });
  const next = await client.messages.create({ ...said, messages: [...said.messages], max_tokens: 1 });
  expect(next.usage.output_tokens).toBe(1);
});
