/**
 * The registry of architectures, by `general.architecture` in a GGUF, and the loading of a file's program. Each
 * architecture is checked against llama.cpp's logits in test/engine/architectures/.
 */
import type { MemoryProgram, Program } from "../program/backend.ts";
import { takeRowsEarly } from "../program/early-rows.ts";
import { DIFFUSION_ARCHS } from "../program/diffusion.ts";
import { runsWhole, writtenBy } from "../program/describe.ts";
import type { Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { applyAdapters } from "./adapter.ts";
import { apertus } from "./apertus.ts";
import { deci, openelm } from "./deci.ts";
import { afmoe, laguna, museGlimmer, spark25, step35 } from "./gated.ts";
import { gemma3n } from "./gemma3n.ts";
import { arctic, grok } from "./grok.ts";
import { grovemoe } from "./grovemoe.ts";
import { hrmText } from "./hrm-text.ts";
import { hyV4, hyV4Chooses } from "./hy-v4.ts";
import { kimiK3 } from "./kimi-k3.ts";
import { bailingmoe3, kimiLinear } from "./kimi-linear.ts";
import { mimo2 } from "./mimo2.ts";
import { plamo, plamo2, plamo3 } from "./plamo.ts";
import { bert, jinaBertV2, jinaBertV3, nomicBert, nomicBertMoe } from "./bert.ts";
import { bitnet } from "./bitnet.ts";
import { euroBert, modernBert, neoBert } from "./encoders.ts";
import * as experts from "./experts.ts";
import type { Frame } from "./decoder.ts";
import { diffusionTraits, dream, llada, lladaMoe, rnd1 } from "./diffusion.ts";
import { deepseek2, deepseek2Ocr, minicpm3, plm } from "./deepseek2.ts";
import { deepseek4, deepseek4Chooses } from "./deepseek4.ts";
import { draftLayer, hasDraftLayer } from "./draft-layer.ts";
import { withFactors } from "./factors.ts";
import { gemmaEmbedding } from "./gemma-embedding.ts";
import { gemma4 } from "./gemma4.ts";
import * as gpt from "./gpt.ts";
import * as sequential from "./sequential.ts";
import { falconH1 } from "./falcon-h1.ts";
import { gemma, gemma2, gemma3 } from "./gemma.ts";
import { granite, graniteMoe, graniteSwa } from "./granite.ts";
import { graniteHybrid } from "./granite-hybrid.ts";
import { keysOf, type Keys } from "./hparams.ts";
import { chosenPositions, deepseek32, glmDsa, minimaxM3 } from "./indexed.ts";
import { jamba } from "./jamba.ts";
import { lfm2 } from "./lfm2.ts";
import { llama4 } from "./llama4.ts";
import { llama } from "./llama.ts";
import { mamba, mamba2 } from "./mamba.ts";
import { mllama, mllamaMemory } from "./mllama.ts";
import { buffersOf, openModel, type Model } from "./model.ts";
import { nemotronH } from "./nemotron-h.ts";
import { qwen35, qwen3next } from "./qwen35.ts";
import { checkShared } from "./shared-keys.ts";
import { checkAllRead } from "./unread-keys.ts";
import { t5, t5Encoder, t5Memory, t5Reader } from "./t5.ts";
import { twoSided } from "./two-sided.ts";
import { rwkv6, rwkv6qwen2 } from "./rwkv6.ts";
import { arwkv7, rwkv7 } from "./rwkv7.ts";
import { talkie } from "./talkie.ts";
import { whisper, whisperMemory } from "./whisper.ts";

export { applyAdapters };
export { checkOffer, offerAdapters } from "./offered-adapters.ts";

/**
 * The forward pass of a model as steps. Afterwards `last` holds the final hidden states, and `logits` the logits, which
 * an encoder does not have.
 */
export type Architecture = (model: Model) => Step[];

interface Entry {
  readonly build: Architecture;
  /** Set if layers may differ in heads and widths, or have no attention. */
  readonly uneven?: true;
  /** Set if embeddings have more rows than logits: tokens that no text contains. */
  readonly wide?: true;
  /** Builds the draft layer that files may have, with another frame. */
  readonly draft?: (model: Model, frame: Frame) => Step[];
  /** Computes keys and values for its layers of cross attention. */
  readonly memory?: (model: Model) => MemoryProgram;
  /** The encoder of prompts, and the id that begins an answer. */
  readonly reader?: (model: Model) => { readonly steps: Step[]; readonly start: number };
  /** The decoder of a model that transcribes speech. */
  readonly writesSpeech?: true;
  /** Positions that a layer may choose. */
  readonly chooses?: (keys: Keys) => number | undefined;
}

export const archs = {
  afmoe: { build: afmoe },
  apertus: { build: apertus },
  arcee: { build: sequential.arcee },
  arctic: { build: arctic },
  arwkv7: { build: arwkv7, uneven: true },
  baichuan: { build: sequential.baichuan },
  bailingmoe: { build: experts.bailingmoe },
  bailingmoe2: { build: experts.bailingmoe2 },
  bailingmoe3: { build: bailingmoe3, uneven: true },
  bert: { build: bert },
  bitnet: { build: bitnet },
  bloom: { build: gpt.bloom },
  chatglm: { build: sequential.chatglm },
  codeshell: { build: gpt.codeshell },
  cogvlm: { build: sequential.cogvlm },
  cohere2: { build: gpt.cohere2 },
  cohere2moe: { build: experts.cohere2moe },
  "command-r": { build: gpt.commandR },
  dbrx: { build: experts.dbrx },
  deci: { build: deci, uneven: true },
  deepseek: { build: experts.deepseek },
  deepseek2: { build: deepseek2, uneven: true, draft: deepseek2 },
  "deepseek2-ocr": { build: deepseek2Ocr },
  deepseek4: { build: deepseek4, chooses: deepseek4Chooses },
  deepseek32: { build: deepseek32, uneven: true, chooses: chosenPositions },
  dream: { build: dream },
  dots1: { build: experts.dots1 },
  ernie4_5: { build: sequential.ernie45 },
  "ernie4_5-moe": { build: experts.ernie45moe },
  eurobert: { build: euroBert },
  exaone: { build: sequential.exaone },
  "exaone-moe": { build: experts.exaoneMoe },
  exaone4: { build: sequential.exaone4 },
  falcon: { build: gpt.falcon },
  "falcon-h1": { build: falconH1, uneven: true },
  gemma: { build: gemma },
  "gemma-embedding": { build: gemmaEmbedding },
  gemma2: { build: gemma2 },
  gemma3: { build: gemma3 },
  gemma3n: { build: gemma3n },
  gemma4: { build: gemma4, uneven: true },
  glm4: { build: sequential.glm4 },
  glm4moe: { build: experts.glm4moe, draft: experts.glm4moe },
  "glm-dsa": { build: glmDsa, uneven: true, chooses: chosenPositions },
  "gpt-oss": { build: experts.gptOss },
  gpt2: { build: gpt.gpt2 },
  gptneox: { build: gpt.gptneox },
  granite: { build: granite },
  granite_swa: { build: graniteSwa },
  granitehybrid: { build: graniteHybrid, uneven: true },
  granitemoe: { build: graniteMoe },
  grok: { build: grok },
  grovemoe: { build: grovemoe },
  hrm_text: { build: hrmText },
  "hunyuan-dense": { build: sequential.hunyuanDense },
  "hunyuan-moe": { build: experts.hunyuanMoe },
  hunyuan_vl: { build: sequential.hunyuanDense },
  hy_v3: { build: experts.hyV3, draft: experts.hyV3 },
  hy_v4: { build: hyV4, uneven: true, chooses: hyV4Chooses },
  internlm2: { build: sequential.internlm2 },
  jais: { build: gpt.jais },
  jais2: { build: sequential.jais2 },
  jamba: { build: jamba, uneven: true },
  "jina-bert-v2": { build: jinaBertV2 },
  "jina-bert-v3": { build: jinaBertV3 },
  "kimi-k3": { build: kimiK3, uneven: true },
  "kimi-linear": { build: kimiLinear, uneven: true },
  laguna: { build: laguna, uneven: true },
  lfm2: { build: lfm2, uneven: true },
  lfm2moe: { build: lfm2, uneven: true },
  llama: { build: llama },
  llada: { build: llada },
  "llada-moe": { build: lladaMoe },
  "llama-embed": { build: llama },
  llama4: { build: llama4 },
  maincoder: { build: sequential.maincoder },
  mamba: { build: mamba, uneven: true },
  mamba2: { build: mamba2, uneven: true },
  maple: { build: experts.maple },
  mellum: { build: experts.mellum },
  mimo2: { build: mimo2, uneven: true },
  minicpm: { build: sequential.minicpm },
  minicpm3: { build: minicpm3, uneven: true },
  "minimax-m2": { build: experts.minimaxM2 },
  "minimax-m3": { build: minimaxM3, chooses: chosenPositions },
  mistral3: { build: sequential.mistral3 },
  mistral4: { build: deepseek2, uneven: true },
  mllama: { build: mllama, wide: true, memory: mllamaMemory },
  "modern-bert": { build: modernBert },
  mpt: { build: gpt.mpt },
  "muse-glimmer": { build: museGlimmer },
  nanbeige: { build: sequential.nanbeige },
  nemotron: { build: gpt.nemotron },
  "neo-bert": { build: neoBert },
  nemotron_h: { build: nemotronH, uneven: true },
  nemotron_h_moe: { build: nemotronH, uneven: true },
  "nomic-bert": { build: nomicBert },
  "nomic-bert-moe": { build: nomicBertMoe },
  olmo: { build: sequential.olmo },
  olmo2: { build: sequential.olmo2 },
  olmoe: { build: experts.olmoe },
  openelm: { build: openelm, uneven: true },
  orion: { build: sequential.orion },
  paddleocr: { build: sequential.paddleocr },
  "pangu-embedded": { build: sequential.panguEmbedded },
  phi2: { build: gpt.phi2 },
  phi3: { build: sequential.phi3 },
  phimoe: { build: experts.phimoe },
  plamo: { build: plamo },
  plamo2: { build: plamo2, uneven: true },
  plamo3: { build: plamo3, uneven: true },
  plm: { build: plm, uneven: true },
  qwen: { build: sequential.qwen },
  qwen2: { build: sequential.qwen2 },
  qwen2moe: { build: experts.qwen2moe },
  qwen2vl: { build: sequential.qwen2vl },
  qwen3: { build: sequential.qwen3 },
  qwen35: { build: qwen35, uneven: true, draft: qwen35 },
  qwen35moe: { build: qwen35, uneven: true, draft: qwen35 },
  qwen3moe: { build: experts.qwen3moe },
  qwen3next: { build: qwen3next, uneven: true, draft: qwen3next },
  qwen3vl: { build: sequential.qwen3vl },
  qwen3vlmoe: { build: experts.qwen3vlmoe },
  refact: { build: sequential.refact },
  rnd1: { build: rnd1 },
  rwkv6: { build: rwkv6, uneven: true },
  rwkv6qwen2: { build: rwkv6qwen2, uneven: true },
  rwkv7: { build: rwkv7, uneven: true },
  seed_oss: { build: sequential.seedOss },
  smallthinker: { build: experts.smallthinker },
  smollm3: { build: sequential.smollm3 },
  spark2_5: { build: spark25, uneven: true },
  stablelm: { build: gpt.stablelm },
  starcoder: { build: gpt.gpt2 },
  starcoder2: { build: gpt.starcoder2 },
  step35: { build: step35, uneven: true },
  t5: { build: t5, memory: t5Memory, reader: t5Reader },
  t5encoder: { build: t5Encoder },
  talkie: { build: talkie },
  whisper: { build: whisper, memory: whisperMemory, writesSpeech: true },
  xverse: { build: sequential.xverse },
} as const satisfies Record<string, Entry>;

const entryOf = (arch: unknown): Entry | undefined => Object.entries<Entry>(archs).find(([name]) => name === arch)?.[1];

/** The draft layer of a file as a separate program; undefined if the file has no layer of a known kind. */
export function loadDraftLayer(gguf: Gguf): Program | undefined {
  const arch = String(gguf.metadata.get("general.architecture"));
  const { draft, uneven = false } = entryOf(arch) ?? {};
  if (!draft) return undefined;
  const keys = keysOf(gguf, arch);
  const model = openModel(gguf, keys, { uneven });
  if (!hasDraftLayer(keys, model)) return undefined;
  const { dim, vocabSize } = model;
  const { last: states, logits } = buffersOf(model);
  const steps = withFactors(gguf, takeRowsEarly(draft(model, draftLayer)));
  return { shape: { arch, dim, nLayers: 1, vocabSize }, steps, logits, states, weights: gguf };
}

/**
 * The steps of a file with adapters applied; hyperparameters and the shape of every weight are checked. Reads no
 * weights of the model.
 */
export function loadProgram(gguf: Gguf, adapters: readonly Gguf[] = []): Program {
  const arch = gguf.metadata.get("general.architecture");
  const entry = entryOf(arch);
  if (!entry) {
    const known = Object.keys(archs).join(", ");
    const got = typeof arch === "string" ? `'${arch.slice(0, 40)}'` : "none";
    throw new AppError("unsupported", `${gguf.path}: general.architecture: expected one of ${known}, got ${got}`);
  }
  const keys = keysOf(gguf, String(arch));
  const model = openModel(gguf, keys, { uneven: entry.uneven ?? false, wide: entry.wide ?? false });
  const steps = withFactors(gguf, takeRowsEarly(sided(model, entry.build(model))));
  const crossed = entry.memory?.(model);
  const memory = crossed && { ...crossed, steps: withFactors(gguf, crossed.steps) };
  const read = entry.reader?.(model);
  model.checkAllUsed(keys.arch, { draftsFrom: keys.number("nextn_predict_layers", 0) > 0 ? model.nLayers : Infinity });
  checkShared(steps, keys, gguf.path);
  const choosesAbove = entry.chooses?.(keys);
  const trained = DIFFUSION_ARCHS.get(keys.arch);
  checkAllRead(keys, gguf.path, { bidirectional: runsWhole(steps) });
  const { dim, nLayers, vocabSize } = model;
  const shape = { arch: keys.arch, dim, nLayers, vocabSize };
  const { last, logits } = buffersOf(model);
  const reader = read && {
    start: read.start,
    program: { shape, steps: withFactors(gguf, read.steps), logits: undefined, states: last, weights: gguf },
  };
  const answers = steps.some((step) => writtenBy(step).name === logits.name);
  const program: Program = {
    shape,
    steps,
    logits: answers ? logits : undefined,
    states: answers ? last : writtenBy(steps.at(-1)!), // an encoder may end with a matrix of another width
    weights: gguf,
    ...(choosesAbove !== undefined && { choosesAbove }),
    ...(memory && { memory }),
    ...(reader && { reader }),
    ...(entry.writesSpeech && { writesSpeech: true }),
    ...(trained && { diffusion: diffusionTraits(gguf, { vocabSize, blocks: trained === "blocks" }) }),
  };
  return applyAdapters(program, gguf, adapters);
}

/** Steps of a decoder whose file asks for bidirectional attention. */
function sided(model: Model, steps: readonly Step[]): readonly Step[] {
  if (runsWhole(steps)) return steps;
  return model.keys.flag("attention.causal", true) ? steps : twoSided(model, steps);
}
