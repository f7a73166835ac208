/** Gemma 3 270M through the server, as a user does: create, show, generate, chat, schemas, a long context. */
import { afterAll, beforeAll, expect, setDefaultTimeout } from "bun:test";
import { join } from "node:path";
import { ASKED } from "../../bench/real/texts.ts";
import { runHearth, startHearth, type Hearth } from "../e2e/hearth.ts";
import { realModel, recorded } from "./models.ts";

const gemma = await realModel("gemma");
setDefaultTimeout(180_000);
const GREEDY = { temperature: 0, num_ctx: 4096, num_predict: 24 };
let hearth: Hearth | undefined;

beforeAll(async () => {
  if (gemma.path === "") return;
  hearth = await startHearth();
  const modelfile = join(hearth.home, "Modelfile");
  await Bun.write(modelfile, `FROM ${gemma.path}\nTEMPLATE """Question: {{ .Prompt }}\nAnswer: {{ .Response }}\n"""\n`);
  const env = { HEARTH_HOST: hearth.url };
  const { code, stderr } = await runHearth(["create", "gemma", "-f", modelfile], { home: hearth.home, env });
  if (code !== 0) throw new Error(stderr);
}, 120_000);
afterAll(() => hearth?.stop());

async function ask(path: string, body: object): Promise<Record<string, any>> {
  const reply = await hearth!.post(path, { model: "gemma", stream: false, ...body });
  return (await reply.json()) as Record<string, any>;
}

gemma.test("a created model shows the file's details and capabilities", async () => {
  const { details, model_info: info, capabilities } = await ask("/api/show", {});
  expect(details).toMatchObject({ family: "gemma3", parameter_size: "268.1M", quantization_level: "Q4_K_M" });
  expect(info).toMatchObject({ "gemma3.context_length": 32768, "gemma3.attention.sliding_window": 512 });
  expect(capabilities).toEqual(["completion"]);
});

gemma.test("answers to most questions equal llama.cpp's, and end at the stop string", async () => {
  const theirs = ((await recorded("answers.json").json()) as string[]).map((text) => text.split("\n")[0]);
  const ours: string[] = [];
  for (const prompt of ASKED) {
    const options = { ...GREEDY, stop: ["\n"] };
    const { response, done_reason: reason } = await ask("/api/generate", { prompt, raw: true, options });
    expect([prompt, reason]).toEqual([prompt, "stop"]);
    expect(response).not.toMatch(/[<\n\uFFFD]|Question/);
    ours.push(response);
  }
  // 8-bit activations decide otherwise between tokens that are nearly as likely
  expect(ours.filter((text, i) => text.trim() === theirs[i]!.trim()).length).toBeGreaterThanOrEqual(6);
});

gemma.test("each of twenty turns ends at the stop string, without markup", async () => {
  const messages: { role: string; content: string }[] = [];
  for (let turn = 0; turn < 20; turn++) {
    messages.push({ role: "user", content: `What is ${turn} plus 1?` });
    const { message, done_reason: reason } = await ask("/api/chat", { messages, options: { ...GREEDY, stop: ["\n"] } });
    expect([turn, reason]).toEqual([turn, "stop"]);
    expect(message.content).not.toMatch(/[<\n\uFFFD]|Question/);
    messages.push({ role: "assistant", content: message.content });
  }
});

gemma.test("answers follow a schema", async () => {
  const format = {
    type: "object",
    properties: {
      name: { type: "string", maxLength: 20 },
      age: { type: "integer" },
      job: { enum: ["doctor", "baker"] },
    },
    required: ["name", "age", "job"],
  };
  const content = "Describe Anna, a baker aged 31.";
  const options = { ...GREEDY, num_predict: 120 };
  const { message } = await ask("/api/chat", { messages: [{ role: "user", content }], format, options });
  const { name, age, job } = JSON.parse(message.content) as Record<string, unknown>;
  expect([typeof name, Number.isInteger(age), ["doctor", "baker"].includes(String(job))]).toEqual([
    "string",
    true,
    true,
  ]);
});

gemma.test("a required call fits the tool's schema, and its result is added to the prompt", async () => {
  const template = await Bun.file(join(import.meta.dir, "../engine/text/template/golden/go/qwen-tools.gotmpl")).text();
  expect(await ask("/api/create", { model: "caller", from: "gemma", template })).toEqual({ status: "success" });
  const parameters = {
    type: "object",
    properties: { city: { type: "string", maxLength: 20 }, unit: { enum: ["celsius", "fahrenheit"] } },
    required: ["city", "unit"],
  };
  const tools = [{ type: "function", function: { name: "get_weather", description: "Weather in a city", parameters } }];
  const messages: object[] = [{ role: "user", content: "How warm is it in Rome, in celsius?" }];
  const options = { ...GREEDY, num_predict: 120 };
  const { message } = await ask("/api/chat", { model: "caller", messages, tools, tool_choice: "required", options });
  const { name, arguments: given } = message.tool_calls[0].function;
  expect([name, Object.keys(given).sort(), message.content]).toEqual(["get_weather", ["city", "unit"], ""]);
  expect(parameters.properties.unit.enum).toContain(given.unit);
  expect(given.city.length).toBeLessThanOrEqual(20);
  messages.push(message, { role: "tool", tool_name: "get_weather", content: "18 degrees" });
  const { done, prompt_eval_count: count } = await ask("/api/chat", { model: "caller", messages, tools, options });
  expect([done, count > 150]).toEqual([true, true]);
});

gemma.test("a text is repeated from far outside the sliding window", async () => {
  const list = Array.from({ length: 150 }, (_, i) => `Item ${i + 1} costs ${3 * (i + 1)} euros.`).join("\n");
  const prompt = `${list}\n\n${list.slice(0, list.indexOf("Item 40 "))}`;
  const { response, prompt_eval_count: count } = await ask("/api/generate", { prompt, raw: true, options: GREEDY });
  expect(count).toBeGreaterThan(2000);
  expect(response.trim()).toMatch(/^Item 40 costs 120 euros\./);
});
