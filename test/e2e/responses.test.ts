/** The Responses API with the embedded model: the `openai` npm client, and the shape of every event of a stream. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { NEVER_ENDING } from "../clients/target.ts";
import { CHECKS } from "../clients/responses-client.ts";
import { checkStream } from "../server/response-shapes.ts";
import { eventsOf } from "../server/sse-frames.ts";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth({ env: { HEARTH_NUM_PARALLEL: "1" } }); // a single slot reveals a request that keeps it
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

test("a runner that dies during an answer ends the stream with response.failed", async () => {
  const format = { type: "json_schema", name: "n", schema: NEVER_ENDING };
  const response = await hearth.post("/v1/responses", { model: "hearth", input: "hi", stream: true, text: { format } });
  const [head, rest] = response.body!.tee();
  await head.getReader().read();
  for (const pid of await hearth.runnerPids()) process.kill(pid, "SIGKILL");
  expect(checkStream(await eventsOf(new Response(rest)))).toMatchObject({
    status: "failed",
    error: { code: "server_error", message: expect.stringContaining("unexpectedly stopped") },
    output: [{ type: "message", status: "incomplete" }],
  });
});
