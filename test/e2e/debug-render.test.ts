/** `_debug_render_only`: the prompt instead of an answer, also for histories whose old thinking is dropped. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(60_000);

const TEMPLATE = "{{ range .Messages }}<{{ .Role }}>{{ .Content }}{{ end }}<assistant>";
const messages = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "Hi" },
  { role: "assistant", content: "<think>Thinking... about the answer</think>abc" },
  { role: "user", content: "And?" },
];

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
  for (const model of ["deepseek-r1", "other"]) {
    const created = { model, from: "hearth", template: TEMPLATE, stream: false };
    expect((await hearth.post("/api/create", created)).status).toBe(200);
  }
});
afterAll(() => hearth.stop());

async function rendered(path: string, body: object): Promise<Record<string, any>> {
  const response = await hearth.post(path, { model: "other", _debug_render_only: true, ...body });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json; charset=utf-8"]);
  return (await response.json()) as Record<string, any>;
}

test("chat answers with one object that has the prompt, streamed or not, and does not run it", async () => {
  for (const stream of [undefined, false]) {
    expect(await rendered("/api/chat", { messages: messages.slice(0, 2), stream })).toEqual({
      model: "other",
      created_at: expect.any(String),
      message: { role: "", content: "" },
      done: false,
      _debug_info: { rendered_template: "<system>Be brief.<user>Hi<assistant>" },
    });
  }
});

test("generate shows the prompt with a system text, raw, and with the request's template", async () => {
  const text = async (body: object): Promise<string> =>
    (await rendered("/api/generate", { prompt: "Hi", ...body }))["_debug_info"].rendered_template;
  expect(await text({ system: "S" })).toBe("<system>S<user>Hi<assistant>");
  expect(await text({ raw: true })).toBe("Hi");
  expect(await text({ template: "[{{ .Prompt }}]" })).toBe("[Hi]");
  expect((await rendered("/api/generate", { prompt: "Hi" }))["response"]).toBe("");
});

test("generate shows the text of the context before the prompt", async () => {
  const response = await hearth.post("/api/tokenize", { model: "other", content: "Said before." });
  const { tokens } = (await response.json()) as { tokens: number[] };
  const shown = await rendered("/api/generate", { prompt: "And?", context: tokens });
  expect(shown["_debug_info"].rendered_template).toBe("Said before.<user>And?<assistant>");
});

test("/v1/chat/completions has the prompt beside an empty choice", async () => {
  const { _debug_info: info, choices } = await rendered("/v1/chat/completions", { messages: messages.slice(1, 2) });
  expect(info).toEqual({ rendered_template: "<user>Hi<assistant>" });
  expect(choices[0].message.content).toBe("");
});

test("thoughts of earlier answers are left out for deepseek-r1 only", async () => {
  const text = async (model: string): Promise<string> =>
    (await rendered("/api/chat", { model, messages }))["_debug_info"].rendered_template;
  expect(await text("deepseek-r1")).toBe("<system>Be brief.<user>Hi<assistant>abc<user>And?<assistant>");
  expect(await text("other")).toContain("<think>Thinking... about the answer</think>abc");
});

test("a history that is longer than the context is shown as it would be cut", async () => {
  const long = [...Array(40).keys()].map((i) => ({
    role: i % 2 ? "assistant" : "user",
    content: `${i} ${"word ".repeat(9)}`,
  }));
  const body = { messages: [...long, { role: "user", content: "last" }], options: { num_ctx: 256 } };
  const text: string = (await rendered("/api/chat", body))["_debug_info"].rendered_template;
  expect(text).not.toContain("<user>0 word");
  expect(text).toEndWith("<user>last<assistant>");
});
