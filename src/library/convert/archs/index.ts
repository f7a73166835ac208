/** The registry of convertible architectures, by the name in `architectures` of `config.json`. */
import { AppError } from "../../../base/index.ts";
import type { Architecture } from "../architecture.ts";
import { describe, type JsonObject } from "../folder.ts";
import { bert } from "./bert.ts";
import { gemma } from "./gemma.ts";
import { gemma2 } from "./gemma2.ts";
import { gemma3 } from "./gemma3.ts";
import { llama } from "./llama.ts";
import { phi3 } from "./phi3.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";

export const convertible = {
  BertModel: bert,
  Gemma2ForCausalLM: gemma2,
  Gemma3ForCausalLM: gemma3,
  Gemma3ForConditionalGeneration: gemma3,
  GemmaForCausalLM: gemma,
  LlamaForCausalLM: llama,
  MistralForCausalLM: llama,
  Phi3ForCausalLM: phi3,
  Qwen2ForCausalLM: qwen2,
  Qwen3ForCausalLM: qwen3,
} as const satisfies Record<string, Architecture>;

/** Throws `unsupported` naming the architecture and the known ones. */
export function findArchitecture(config: JsonObject, label: string): Architecture {
  const listed = config["architectures"];
  const name: unknown = Array.isArray(listed) ? listed[0] : undefined;
  const found = Object.entries<Architecture>(convertible).find(([known]) => known === name)?.[1];
  if (found) return found;
  const known = Object.keys(convertible).join(", ");
  const problem = typeof name === "string" ? `unsupported architecture ${describe(name)}` : "unknown architecture";
  throw new AppError("unsupported", `${problem}: ${label}: 'architectures': expected one of ${known}`);
}
