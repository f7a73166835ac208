import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ChosenLogprob, InferenceEvent } from "../../../src/runtime/requests/runtime.ts";
import { DONE, play } from "../fakes.ts";
import { CREATED_AT, linesOf, makeHarness, type Harness } from "../harness.ts";

const he: ChosenLogprob = { id: 1, token: "He", bytes: [72, 101], logprob: -0.5, top: [] };
const llo: ChosenLogprob = {
  id: 2,
  token: "llo",
  bytes: [108, 108, 111],
  logprob: -1.5,
  top: [{ id: 3, token: "y", bytes: [121], logprob: -0.25 }],
};
const EVENTS: InferenceEvent[] = [
  { kind: "thinking", text: "He", logprobs: [he] },
  { kind: "text", text: "llo", logprobs: [llo] },
  { ...(DONE as Extract<InferenceEvent, { kind: "done" }>), truncated: true },
];
const HE = { token: "He", logprob: -0.5, bytes: [72, 101] };
const LLO = {
  token: "llo",
  logprob: -1.5,
  bytes: [108, 108, 111],
  top_logprobs: [{ token: "y", logprob: -0.25, bytes: [121] }],
};

let harness: Harness;
beforeAll(async () => {
  harness = await makeHarness();
  harness.runtime.script = play(EVENTS);
});
afterAll(() => harness.close());

const asked = () => harness.runtime.requests.at(-1);

describe.each([
  ["/api/generate", { model: "m", prompt: "hi" }],
  ["/api/chat", { model: "m", messages: [{ role: "user", content: "hi" }] }],
])("POST %s", (path, body) => {
  const post = (more: object) => harness.post(path, { ...body, ...more });

  test("logprobs: each streamed object has the entries of its own text, and the last object has none", async () => {
    const lines = await linesOf(await post({ logprobs: true, top_logprobs: 1 }));
    expect(lines.map(({ logprobs }) => logprobs)).toEqual([[HE], [LLO], undefined]);
    expect(asked()).toMatchObject({ logprobs: 1 });
  });

  test("logprobs without streaming: one list holds the entries of the whole answer", async () => {
    const whole = await (await post({ logprobs: true, stream: false })).json();
    expect(whole).toMatchObject({ created_at: CREATED_AT, done: true, logprobs: [HE, LLO] });
    expect(asked()).toMatchObject({ logprobs: 0 });
  });

  test("top_logprobs without logprobs is ignored", async () => {
    await post({ top_logprobs: 5 });
    expect(asked()).not.toHaveProperty("logprobs");
  });

  test("top_logprobs outside of 0 to 20: 400, also for a missing model", async () => {
    for (const count of [-1, 21]) {
      const response = await post({ model: "nobody", logprobs: true, top_logprobs: count });
      expect([response.status, await response.json()]).toEqual([
        400,
        { error: "top_logprobs must be between 0 and 20" },
      ]);
    }
    expect((await post({ top_logprobs: 20 })).status).toBe(200);
  });

  test("truncate and shift reach the runtime, and stay absent if the request lacks them", async () => {
    await post({ truncate: false, shift: false });
    expect(asked()).toMatchObject({ truncate: false, shift: false });
    await post({});
    expect(asked()).not.toHaveProperty("truncate");
    expect(asked()).not.toHaveProperty("shift");
  });

  test("truncated: is true on the last object if part of the prompt was left out, and otherwise absent", async () => {
    const lines = await linesOf(await post({}));
    expect(lines.map(({ truncated }) => truncated)).toEqual([undefined, undefined, true]);
    expect(await (await post({ stream: false })).json()).toMatchObject({ truncated: true });
    harness.runtime.script = play([DONE]);
    expect(await (await post({ stream: false })).json()).not.toHaveProperty("truncated");
    harness.runtime.script = play(EVENTS);
  });
});
