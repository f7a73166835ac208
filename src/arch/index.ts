/**
 * The registry of architectures, by the name that a GGUF gives in `general.architecture`, and the way from a file to a
 * program. Each is checked against llama.cpp's logits in test/arch/.
 */
import type { Program } from "../backend/backend.ts";
import { takeRowsEarly } from "../backend/early-rows.ts";
import { writtenBy } from "../backend/describe.ts";
import type { Step } from "../backend/step.ts";
import { AppError } from "../base/errors.ts";
import type { Gguf } from "../gguf/gguf.ts";
import { applyAdapters } from "./adapter.ts";
import { bert, nomicBert } from "./bert.ts";
import {
  bloom,
  codeshell,
  cohere2,
  commandR,
  falcon,
  gpt2,
  gptneox,
  jais,
  mpt,
  nemotron,
  phi2,
  stablelm,
  starcoder2,
} from "./gpt.ts";
import {
  arcee,
  baichuan,
  chatglm,
  ernie45,
  exaone,
  exaone4,
  glm4,
  hunyuanDense,
  internlm2,
  minicpm,
  olmo,
  orion,
  qwen,
  refact,
  seedOss,
  xverse,
} from "./sequential.ts";
import { gemma } from "./gemma.ts";
import { gemma2 } from "./gemma2.ts";
import { gemma3 } from "./gemma3.ts";
import { granite } from "./granite.ts";
import { keysOf } from "./hparams.ts";
import { llama } from "./llama.ts";
import { mistral3 } from "./mistral3.ts";
import { buffersOf, openModel, type Model } from "./model.ts";
import { olmo2 } from "./olmo2.ts";
import { phi3 } from "./phi3.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";
import { qwen3moe } from "./qwen3moe.ts";
import { smollm3 } from "./smollm3.ts";

/**
 * The forward pass of a model, step by step. `last` then holds the final hidden states, and `logits`, which an encoder
 * does not write, what comes of them.
 */
export type Architecture = (model: Model) => Step[];

export const archs = {
  arcee,
  baichuan,
  bert,
  bloom,
  chatglm,
  codeshell,
  cohere2,
  "command-r": commandR,
  ernie4_5: ernie45,
  exaone,
  exaone4,
  falcon,
  glm4,
  gpt2,
  gptneox,
  "hunyuan-dense": hunyuanDense,
  internlm2,
  jais,
  minicpm,
  mpt,
  nemotron,
  olmo,
  orion,
  phi2,
  qwen,
  qwen2vl: qwen2,
  qwen3vl: qwen3,
  qwen3vlmoe: qwen3moe,
  refact,
  seed_oss: seedOss,
  stablelm,
  starcoder: gpt2,
  starcoder2,
  xverse,
  gemma,
  gemma2,
  gemma3,
  granite,
  granitemoe: granite,
  llama,
  mistral3,
  "nomic-bert": nomicBert,
  olmo2,
  phi3,
  qwen2,
  qwen3,
  qwen3moe,
  smollm3,
} as const satisfies Record<string, Architecture>;

/**
 * The steps of a file, its hyperparameters and the shape of every weight checked, with adapters laid over it. No weight
 * of the model is read.
 */
export function loadProgram(gguf: Gguf, adapters: readonly Gguf[] = []): Program {
  const arch = gguf.metadata.get("general.architecture");
  const architecture = Object.entries<Architecture>(archs).find(([name]) => name === arch)?.[1];
  if (!architecture) {
    const known = Object.keys(archs).join(", ");
    const got = typeof arch === "string" ? `'${arch.slice(0, 40)}'` : "none";
    throw new AppError("unsupported", `${gguf.path}: general.architecture: expected one of ${known}, got ${got}`);
  }
  const keys = keysOf(gguf, String(arch));
  const model = openModel(gguf, keys);
  const steps = takeRowsEarly(architecture(model));
  model.checkAllUsed(keys.arch);
  const { dim, nLayers, vocabSize } = model;
  const { last, logits } = buffersOf(model);
  const program: Program = {
    shape: { arch: keys.arch, dim, nLayers, vocabSize },
    steps,
    logits: steps.some((step) => writtenBy(step).name === logits.name) ? logits : undefined,
    states: last,
    weights: gguf,
  };
  return applyAdapters(program, gguf, adapters);
}
