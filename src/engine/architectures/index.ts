/**
 * The registry of architectures, by `general.architecture` in a GGUF, and the loading of a file's program. Each
 * architecture is checked against llama.cpp's logits in test/engine/architectures/.
 */
import type { Program } from "../program/backend.ts";
import { takeRowsEarly } from "../program/early-rows.ts";
import { runsWhole, writtenBy } from "../program/describe.ts";
import type { Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { applyAdapters } from "./adapter.ts";
import { deci, openelm } from "./deci.ts";
import { afmoe, laguna, museGlimmer, spark25 } from "./gated.ts";
import { gemma3n } from "./gemma3n.ts";
import { arctic, grok } from "./grok.ts";
import { grovemoe } from "./grovemoe.ts";
import { hrmText } from "./hrm-text.ts";
import { bailingmoe3, kimiLinear } from "./kimi-linear.ts";
import { mimo2 } from "./mimo2.ts";
import { plamo, plamo2, plamo3 } from "./plamo.ts";
import { bert, jinaBertV2, jinaBertV3, nomicBert, nomicBertMoe } from "./bert.ts";
import { bitnet } from "./bitnet.ts";
import { euroBert, modernBert, neoBert } from "./encoders.ts";
import {
  bailingmoe,
  bailingmoe2,
  cohere2moe,
  dbrx,
  deepseek,
  dots1,
  ernie45moe,
  exaoneMoe,
  glm4moe,
  gptOss,
  hunyuanMoe,
  hyV3,
  maple,
  mellum,
  minimaxM2,
  olmoe,
  phimoe,
  qwen2moe,
  qwen3vlmoe,
  smallthinker,
} from "./experts.ts";
import type { Frame } from "./decoder.ts";
import { deepseek2, deepseek2Ocr, minicpm3 } from "./deepseek2.ts";
import { draftLayer, hasDraftLayer } from "./draft-layer.ts";
import { gemmaEmbedding } from "./gemma-embedding.ts";
import { gemma4 } from "./gemma4.ts";
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
  cogvlm,
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
  qwen2vl,
  qwen3vl,
  maincoder,
  nanbeige,
  panguEmbedded,
  paddleocr,
  jais2,
  seedOss,
  xverse,
} from "./sequential.ts";
import { falconH1 } from "./falcon-h1.ts";
import { gemma } from "./gemma.ts";
import { gemma2 } from "./gemma2.ts";
import { gemma3 } from "./gemma3.ts";
import { granite, graniteMoe, graniteSwa } from "./granite.ts";
import { graniteHybrid } from "./granite-hybrid.ts";
import { keysOf } from "./hparams.ts";
import { jamba } from "./jamba.ts";
import { lfm2 } from "./lfm2.ts";
import { llama4 } from "./llama4.ts";
import { llama } from "./llama.ts";
import { mamba, mamba2 } from "./mamba.ts";
import { mistral3 } from "./mistral3.ts";
import { buffersOf, openModel, type Model } from "./model.ts";
import { nemotronH } from "./nemotron-h.ts";
import { olmo2 } from "./olmo2.ts";
import { phi3 } from "./phi3.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";
import { qwen35, qwen3next } from "./qwen35.ts";
import { qwen3moe } from "./qwen3moe.ts";
import { checkShared } from "./shared-keys.ts";
import { checkAllRead } from "./unread-keys.ts";
import { twoSided } from "./two-sided.ts";
import { talkie } from "./talkie.ts";
import { smollm3 } from "./smollm3.ts";

/**
 * The forward pass of a model as steps. Afterwards `last` holds the final hidden states, and `logits` the logits, which
 * an encoder does not write.
 */
export type Architecture = (model: Model) => Step[];

export const archs = {
  afmoe,
  arcee,
  arctic,
  baichuan,
  bailingmoe,
  bailingmoe2,
  bailingmoe3,
  bert,
  bitnet,
  bloom,
  chatglm,
  codeshell,
  cogvlm,
  cohere2,
  cohere2moe,
  "command-r": commandR,
  dbrx,
  deci,
  deepseek,
  deepseek2,
  "deepseek2-ocr": deepseek2Ocr,
  dots1,
  ernie4_5: ernie45,
  "ernie4_5-moe": ernie45moe,
  eurobert: euroBert,
  exaone,
  "exaone-moe": exaoneMoe,
  exaone4,
  falcon,
  "falcon-h1": falconH1,
  gemma,
  "gemma-embedding": gemmaEmbedding,
  gemma2,
  gemma3,
  gemma3n,
  gemma4,
  glm4,
  glm4moe,
  "gpt-oss": gptOss,
  gpt2,
  gptneox,
  granite,
  granite_swa: graniteSwa,
  granitehybrid: graniteHybrid,
  granitemoe: graniteMoe,
  grok,
  grovemoe,
  hrm_text: hrmText,
  "hunyuan-dense": hunyuanDense,
  "hunyuan-moe": hunyuanMoe,
  hunyuan_vl: hunyuanDense,
  hy_v3: hyV3,
  internlm2,
  jais,
  jais2,
  jamba,
  "jina-bert-v2": jinaBertV2,
  "jina-bert-v3": jinaBertV3,
  "kimi-linear": kimiLinear,
  laguna,
  lfm2,
  lfm2moe: lfm2,
  llama,
  "llama-embed": llama,
  llama4,
  maincoder,
  mamba,
  mamba2,
  maple,
  mellum,
  mimo2,
  minicpm,
  minicpm3,
  "minimax-m2": minimaxM2,
  mistral3,
  mistral4: deepseek2,
  "modern-bert": modernBert,
  mpt,
  "muse-glimmer": museGlimmer,
  nanbeige,
  nemotron,
  "neo-bert": neoBert,
  nemotron_h: nemotronH,
  nemotron_h_moe: nemotronH,
  "nomic-bert": nomicBert,
  "nomic-bert-moe": nomicBertMoe,
  olmo,
  olmo2,
  olmoe,
  openelm,
  orion,
  paddleocr,
  "pangu-embedded": panguEmbedded,
  phi2,
  phi3,
  phimoe,
  plamo,
  plamo2,
  plamo3,
  qwen,
  qwen2,
  qwen2moe,
  qwen2vl,
  qwen3,
  qwen35,
  qwen35moe: qwen35,
  qwen3moe,
  qwen3next,
  qwen3vl,
  qwen3vlmoe,
  refact,
  seed_oss: seedOss,
  smallthinker,
  smollm3,
  spark2_5: spark25,
  stablelm,
  starcoder: gpt2,
  starcoder2,
  talkie,
  xverse,
} as const satisfies Record<string, Architecture>;

/** Architectures whose layers may differ in heads and widths, or have no attention. */
const UNEVEN: ReadonlySet<string> = new Set<keyof typeof archs>([
  "bailingmoe3",
  "deci",
  "deepseek2",
  "falcon-h1",
  "gemma4",
  "granitehybrid",
  "jamba",
  "kimi-linear",
  "laguna",
  "lfm2",
  "lfm2moe",
  "mamba",
  "mamba2",
  "mimo2",
  "minicpm3",
  "mistral4",
  "nemotron_h",
  "nemotron_h_moe",
  "openelm",
  "plamo2",
  "plamo3",
  "qwen35",
  "qwen35moe",
  "qwen3next",
  "spark2_5",
]);

/** Architectures whose files may have a draft layer, in another frame. */
const drafts: Readonly<Record<string, (model: Model, frame: Frame) => Step[]>> = {
  deepseek2,
  glm4moe,
  hy_v3: hyV3,
  qwen35,
  qwen35moe: qwen35,
  qwen3next,
};

/** The draft layer of a file as a separate program; undefined if the file has no layer of a known kind. */
export function loadDraftLayer(gguf: Gguf): Program | undefined {
  const arch = String(gguf.metadata.get("general.architecture"));
  const architecture = Object.entries(drafts).find(([name]) => name === arch)?.[1];
  const keys = keysOf(gguf, arch);
  if (!architecture) return undefined;
  const model = openModel(gguf, keys, { uneven: UNEVEN.has(arch) });
  if (!hasDraftLayer(keys, model)) return undefined;
  const { dim, vocabSize } = model;
  const { last: states, logits } = buffersOf(model);
  const steps = takeRowsEarly(architecture(model, draftLayer));
  return { shape: { arch, dim, nLayers: 1, vocabSize }, steps, logits, states, weights: gguf };
}

/**
 * The steps of a file with adapters applied; hyperparameters and the shape of every weight are checked. Reads no
 * weights of the model.
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
  const model = openModel(gguf, keys, { uneven: UNEVEN.has(keys.arch) });
  const steps = takeRowsEarly(sided(model, architecture(model)));
  model.checkAllUsed(keys.arch, { draftsFrom: keys.number("nextn_predict_layers", 0) > 0 ? model.nLayers : Infinity });
  checkShared(steps, keys, gguf.path);
  checkAllRead(keys, gguf.path, { bidirectional: runsWhole(steps) });
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

/** Steps of a decoder whose file asks for bidirectional attention. */
function sided(model: Model, steps: readonly Step[]): readonly Step[] {
  if (runsWhole(steps)) return steps;
  return model.keys.flag("attention.causal", true) ? steps : twoSided(model, steps);
}
