/**
 * A chat of many turns, a context filled to its limit, answers and calls that follow random schemas: through the
 * server, as clients ask.
 */
import { join } from "node:path";
import { askForSchemas } from "../../test/e2e/schema-answers.ts";
import { runHearth, startHearth, type Hearth } from "../../test/e2e/hearth.ts";
import { STRAY, TEMPLATE } from "./answers.ts";
import type { Bench } from "./bench.ts";

/** Questions of a chat, and what a right answer has. */
const CAPITALS: Readonly<Record<string, string>> = {
  France: "Paris",
  Spain: "Madrid",
  Italy: "Rome",
  Germany: "Berlin",
  Portugal: "Lisbon",
  Austria: "Vienna",
  Poland: "Warsaw",
  Greece: "Athens",
  Ireland: "Dublin",
  Norway: "Oslo",
  Sweden: "Stockholm",
  Finland: "Helsinki",
  Denmark: "Copenhagen",
  Belgium: "Brussels",
  Hungary: "Budapest",
  Russia: "Moscow",
  Japan: "Tokyo",
  Egypt: "Cairo",
  Cuba: "Havana",
  England: "London",
};
const TURNS = Object.keys(CAPITALS).length;
const SCHEMAS = 50;
/** Tokens of contexts, the last near the model's limit. */
const FILLED = [2000, 8000, 32_000];
export const CALLS = join(import.meta.dir, "../../test/engine/text/template/golden/go/qwen-tools.gotmpl");

export async function checkConversations({ file, encode, tell }: Bench): Promise<void> {
  const hearth = await startHearth();
  try {
    await create(hearth, "gemma", `FROM ${file}\nTEMPLATE """${TEMPLATE}"""\n`);
    await create(hearth, "caller", `FROM ${file}\nTEMPLATE """${await Bun.file(CALLS).text()}"""\n`);
    const all = (count: number) => ({ of: "value", atLeast: count }) as const;
    const turns = await goodTurns(hearth, encode);
    const chat = { what: `a chat of ${TURNS} turns`, unit: "" };
    tell({ ...chat, measure: "answers that end and have no strays", ...turns.form });
    tell({ ...chat, measure: "answers right", ...turns.right });
    tell({ ...chat, measure: "prompts of as many tokens as the template's text", ...turns.tokens });
    for (const length of FILLED) {
      const ours = [Number(await isContinued(hearth, encode, length))];
      const what = `a list repeated, ${length} tokens`;
      tell({ what, measure: "continued where it stopped", unit: "", ours, goal: all(1) });
    }
    for (const [way, model, measure] of [
      ["format", "gemma", "answers that fit"],
      ["tool_choice", "caller", "calls that fit"],
    ] as const) {
      const faults = await askForSchemas(hearth, way, [...Array(SCHEMAS).keys()], model);
      for (const fault of faults) console.log(fault);
      const ours = [SCHEMAS - faults.length];
      tell({ what: `${SCHEMAS} random JSON schemas`, measure, unit: "", ours, goal: all(SCHEMAS) });
    }
  } finally {
    await hearth.stop();
  }
}

async function create(hearth: Hearth, name: string, modelfile: string): Promise<void> {
  const path = join(hearth.home, "Modelfile");
  await Bun.write(path, modelfile);
  const env = { HEARTH_HOST: hearth.url };
  const { code, stderr } = await runHearth(["create", name, "-f", path], { home: hearth.home, env });
  if (code !== 0) throw new Error(stderr);
}

async function ask(hearth: Hearth, path: string, body: object): Promise<Record<string, any>> {
  const reply = await hearth.post(path, { model: "gemma", stream: false, ...body });
  const answer = (await reply.json()) as Record<string, any>;
  if (!reply.ok) throw new Error(`${path}: ${answer["error"]}`);
  return answer;
}

/** A pretrained model answers when it was shown how. */
async function goodTurns(hearth: Hearth, encode: Bench["encode"]) {
  const messages = [
    { role: "user", content: "What is the capital of the Netherlands?" },
    { role: "assistant", content: "Amsterdam." },
  ];
  const options = { temperature: 0, num_ctx: 4096, num_predict: 32, stop: ["\n"] };
  const form = { ours: [0], goal: { of: "value", atLeast: TURNS } as const };
  const right = { ours: [0], goal: { of: "value", atLeast: 0.75 * TURNS } as const };
  const tokens = { ours: [0], goal: { of: "value", atLeast: TURNS } as const };
  let text = `Question: ${messages[0]!.content}\nAnswer: ${messages[1]!.content}\n`;
  for (const [country, capital] of Object.entries(CAPITALS)) {
    const content = `What is the capital of ${country}?`;
    messages.push({ role: "user", content });
    text += `Question: ${content}\nAnswer:`;
    const answer = await ask(hearth, "/api/chat", { messages, options });
    const said = (answer["message"].content as string).trim();
    form.ours[0]! += Number(answer["done_reason"] === "stop" && said !== "" && !STRAY.test(said));
    right.ours[0]! += Number(said.includes(capital));
    tokens.ours[0]! += Number(answer["prompt_eval_count"] === encode(text).length);
    messages.push({ role: "assistant", content: said });
    text += ` ${said}\n`;
  }
  return { form, right, tokens };
}

/** A list, and again its beginning: the model continues with the next item. */
async function isContinued(hearth: Hearth, encode: Bench["encode"], length: number): Promise<boolean> {
  const items = (count: number): string[] =>
    Array.from({ length: count }, (_, i) => `Item ${i + 1} costs ${3 * (i + 1)} euros.`);
  let count = 10;
  while (encode(items(count).join("\n")).length * 1.5 < length) count += 10;
  const list = items(count);
  const prompt = `${list.join("\n")}\n\n${list.slice(0, Math.floor(count / 2)).join("\n")}\n`;
  const options = { temperature: 0, num_ctx: 32_768, num_predict: 24 };
  const { response, prompt_eval_count: read } = await ask(hearth, "/api/generate", { prompt, raw: true, options });
  if (Math.abs(read - length) > length / 20) throw new Error(`the prompt has ${read} tokens, expected ${length}`);
  const next = Math.floor(count / 2) + 1;
  return response.trim().startsWith(`Item ${next} costs ${3 * next} euros.`);
}
