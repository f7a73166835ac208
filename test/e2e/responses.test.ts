/** The Responses API with the embedded model: the `openai` npm client, and the shape of every event of a stream. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { CHECKS } from "../clients/responses-client.ts";
import { checkStream } from "../server/response-shapes.ts";
import { eventsOf } from "../server/sse-frames.ts";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
});
afterAll(() => hearth.stop());

for (const [name, check] of Object.entries(CHECKS)) {
  test(`openai client, Responses API: ${name}`, () => check({ url: hearth.url, model: "hearth:latest" }));
}

test("every event of a stream has its documented shape", async () => {
  const body = { model: "hearth", input: "Tell me a story about a fox.", stream: true, temperature: 0 };
  const include = ["message.output_text.logprobs"];
  const response = checkStream(
    await eventsOf(await hearth.post("/v1/responses", { ...body, include, top_logprobs: 2 })),
  );
  expect(response.status).toBe("completed");
  const [item] = response.output;
  const [part] = item?.type === "message" ? item.content : [];
  expect(part!.logprobs.map(({ token }) => token).join("")).toStartWith(part!.text);
  for (const { top_logprobs } of part!.logprobs) expect(top_logprobs).toHaveLength(2);
});
