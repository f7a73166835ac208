/**
 * Requests values of random schemas from a running Hearth: as the format of an answer, and as the arguments of a
 * required tool call. Reports values that do not fit. Used by tests and by bench/schemas.ts.
 */
import { randomSchema } from "../engine/text/sampling/random-schema.ts";
import { misfit } from "../engine/text/sampling/validator.ts";
import type { Hearth } from "./hearth.ts";

/** Far more than any of the schemas needs. */
const PREDICT_MAX = 1500;

export type Way = "format" | "tool_choice";

/**
 * Requests values for these seeds, four at once.
 * @returns failures, one line each
 */
export async function askForSchemas(
  hearth: Hearth,
  way: Way,
  seeds: readonly number[],
  model = "hearth",
): Promise<string[]> {
  const faults: string[] = [];
  const left = [...seeds];
  const work = async (): Promise<void> => {
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      const fault = await ask(hearth, way, seed, model);
      if (fault !== undefined) faults.push(`${way}, seed ${seed}: ${fault}`);
    }
  };
  await Promise.all([work(), work(), work(), work()]);
  return faults;
}

async function ask(hearth: Hearth, way: Way, seed: number, model: string): Promise<string | undefined> {
  const schema = randomSchema(seed);
  const tool = { type: "function", function: { name: "store_value", description: "Stores", parameters: schema } };
  const other = { type: "function", function: { name: "other", parameters: randomSchema(seed + 1) } };
  const choice = seed % 2 === 0 ? "required" : { type: "function", function: { name: "store_value" } };
  const response = await hearth.post("/api/chat", {
    model,
    stream: false,
    messages: [{ role: "user", content: "Tell me about Paris." }],
    options: { seed, temperature: 1, num_predict: PREDICT_MAX },
    ...(way === "format"
      ? { format: schema }
      : { tools: seed % 2 === 0 ? [tool] : [other, tool], tool_choice: choice }),
  });
  const reply = (await response.json()) as Reply;
  if (reply.error !== undefined || !reply.message) return `${response.status} ${reply.error}`;
  if (reply.done_reason !== "stop") return `ended by ${reply.done_reason}: ${reply.message.content}`;
  return way === "format" ? misfitOfText(reply.message, schema) : misfitOfCall(reply.message, schema);
}

interface Reply {
  readonly error?: string;
  readonly done_reason?: string;
  readonly message?: Message;
}

interface Message {
  readonly content: string;
  readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: unknown } }[];
}

function misfitOfText({ content }: Message, schema: unknown): string | undefined {
  try {
    return misfit(JSON.parse(content), schema);
  } catch {
    return `no JSON: ${content}`;
  }
}

function misfitOfCall({ content, tool_calls = [] }: Message, schema: unknown): string | undefined {
  if (content !== "" || tool_calls.length !== 1) return `${tool_calls.length} calls and the text '${content}'`;
  const [call] = tool_calls;
  if (call!.function.name !== "store_value") return `calls ${call!.function.name}`; // it exists
  return misfit(call!.function.arguments, schema);
}
