/** The registry of convertible architectures, by the name in `architectures` of `config.json`. */
import { AppError } from "../../../base/index.ts";
import type { Architecture } from "../architecture.ts";
import { configOf, type Config } from "../config.ts";
import { describe, textConfig, type JsonObject } from "../folder.ts";
import { bert } from "./bert.ts";
import * as deepseek from "./deepseek.ts";
import { deepseek4 } from "./deepseek4.ts";
import * as diffusion from "./diffusion.ts";
import * as embedders from "./embedders.ts";
import * as encoders from "./encoders.ts";
import * as experts from "./experts.ts";
import { gemma } from "./gemma.ts";
import { gemma2 } from "./gemma2.ts";
import { gemma3 } from "./gemma3.ts";
import { gemma3n } from "./gemma3n.ts";
import { gemma4 } from "./gemma4.ts";
import * as gpt from "./gpt.ts";
import { gptOss } from "./gpt-oss.ts";
import { graniteHybrid } from "./hybrid.ts";
import { hyV4 } from "./hy-v4.ts";
import * as indexed from "./indexed.ts";
import { kimiK3 } from "./kimi-k3.ts";
import { llama } from "./llama.ts";
import { mistral3 } from "./mistral3.ts";
import { mllama } from "./mllama.ts";
import { nemotronH, nemotronHasExperts, nemotronHMoe } from "./nemotron-h.ts";
import { phi3 } from "./phi3.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";
import * as qwen35 from "./qwen35.ts";
import * as rankers from "./rankers.ts";
import * as recurrent from "./recurrent.ts";
import * as rwkv from "./rwkv.ts";
import * as sequential from "./sequential.ts";
import { t5, t5Encoder, t5Tied } from "./t5.ts";
import { whisper } from "./whisper.ts";

export const convertible = {
  ApertusForCausalLM: sequential.apertus,
  ArceeForCausalLM: sequential.arcee,
  BertForSequenceClassification: rankers.bertRanker,
  BertModel: bert,
  BloomForCausalLM: gpt.bloom,
  Cohere2ForCausalLM: sequential.cohere2,
  CohereForCausalLM: sequential.commandR,
  DeepseekV2ForCausalLM: deepseek.deepseek2,
  DeepseekV4ForCausalLM: deepseek4,
  DeepseekV32ForCausalLM: indexed.deepseek32,
  DeepseekV3ForCausalLM: deepseek.deepseek3,
  DistilBertForMaskedLM: encoders.distilBert,
  DistilBertModel: encoders.distilBert,
  Dots1ForCausalLM: experts.dots1,
  DreamModel: diffusion.dream,
  Ernie4_5ForCausalLM: sequential.ernie45,
  Ernie4_5_MoeForCausalLM: experts.ernie45moe,
  EuroBertForMaskedLM: embedders.euroBert,
  EuroBertModel: embedders.euroBert,
  Exaone4ForCausalLM: sequential.exaone4,
  ExaoneMoeForCausalLM: experts.exaoneMoe,
  FalconForCausalLM: gpt.falcon,
  FalconMambaForCausalLM: recurrent.falconMamba,
  GPT2LMHeadModel: gpt.gpt2,
  GPTBigCodeForCausalLM: gpt.starcoder,
  GPTNeoXForCausalLM: gpt.gptneox,
  Gemma2ForCausalLM: gemma2,
  Gemma3ForCausalLM: gemma3,
  Gemma3ForConditionalGeneration: gemma3,
  Gemma3nForCausalLM: gemma3n,
  Gemma3nForConditionalGeneration: gemma3n,
  Gemma4ForCausalLM: gemma4,
  Gemma4ForConditionalGeneration: gemma4,
  GemmaForCausalLM: gemma,
  Glm4ForCausalLM: sequential.glm4,
  Glm4MoeLiteForCausalLM: deepseek.deepseek3,
  Glm4MoeForCausalLM: experts.glm4moe,
  GlmForCausalLM: sequential.glm,
  GlmMoeDsaForCausalLM: indexed.glmDsa,
  GptOssForCausalLM: gptOss,
  GraniteForCausalLM: sequential.granite,
  GraniteMoeHybridForCausalLM: graniteHybrid,
  GraniteMoeForCausalLM: experts.graniteMoe,
  HYV3ForCausalLM: experts.hyV3,
  HYV4ForCausalLM: hyV4,
  HunYuanDenseV1ForCausalLM: sequential.hunyuanDense,
  HunYuanMoEV1ForCausalLM: experts.hunyuanMoe,
  Jais2ForCausalLM: sequential.jais2,
  JinaEmbeddingsV3Model: embedders.jinaBertV3,
  KimiK3ForConditionalGeneration: kimiK3,
  LLaDAMoEModel: diffusion.lladaMoe,
  LLaDAMoEModelLM: diffusion.lladaMoe,
  LLaDAModelLM: diffusion.llada,
  Lfm2ForCausalLM: recurrent.lfm2,
  Lfm2MoeForCausalLM: recurrent.lfm2moe,
  LlamaForCausalLM: llama,
  Mamba2ForCausalLM: recurrent.mamba2,
  MambaForCausalLM: recurrent.mamba,
  MT5EncoderModel: t5Encoder,
  MT5ForConditionalGeneration: t5,
  MiniMaxM2ForCausalLM: experts.minimaxM2,
  MiniMaxM3VLForCausalLM: indexed.minimaxM3,
  Ministral3ForCausalLM: mistral3,
  Mistral3ForConditionalGeneration: mistral3,
  MistralForCausalLM: llama,
  MixtralForCausalLM: experts.mixtral,
  MllamaForCausalLM: mllama,
  MllamaForConditionalGeneration: mllama,
  ModernBertForMaskedLM: encoders.modernBert,
  ModernBertForSequenceClassification: rankers.modernBertRanker,
  ModernBertModel: encoders.modernBert,
  MptForCausalLM: gpt.mpt,
  NemotronHForCausalLM: nemotronH,
  NemotronForCausalLM: sequential.nemotron,
  NomicBertModel: embedders.nomicBert,
  Olmo2ForCausalLM: sequential.olmo2,
  Olmo3ForCausalLM: sequential.olmo2,
  OlmoForCausalLM: sequential.olmo,
  OlmoeForCausalLM: experts.olmoe,
  Phi3ForCausalLM: phi3,
  PhiForCausalLM: sequential.phi2,
  PhimoeForCausalLM: experts.phimoe,
  Qwen2ForCausalLM: qwen2,
  Qwen2MoeForCausalLM: experts.qwen2moe,
  Qwen3ForCausalLM: qwen3,
  Qwen3ForSequenceClassification: rankers.qwen3Ranker,
  Qwen3MoeForCausalLM: experts.qwen3moe,
  Qwen3NextForCausalLM: qwen35.qwen3next,
  Qwen3_5ForCausalLM: qwen35.qwen35,
  Qwen3_5ForConditionalGeneration: qwen35.qwen35,
  Qwen3_5MoeForCausalLM: qwen35.qwen35moe,
  Qwen3_5MoeForConditionalGeneration: qwen35.qwen35moe,
  RND1: diffusion.rnd1,
  RWKV6Qwen2ForCausalLM: rwkv.rwkv6qwen2,
  RWKV7ForCausalLM: rwkv.rwkv7,
  RobertaForMaskedLM: encoders.roberta,
  RobertaForSequenceClassification: rankers.robertaRanker,
  RobertaModel: encoders.roberta,
  Rwkv6ForCausalLM: rwkv.rwkv6,
  Rwkv7ForCausalLM: rwkv.rwkv7,
  RwkvHybridForCausalLM: rwkv.arwkv7,
  SeedOssForCausalLM: sequential.seedOss,
  SmolLM3ForCausalLM: sequential.smollm3,
  SolarOpenForCausalLM: experts.solarOpen,
  StableLmForCausalLM: sequential.stablelm,
  Starcoder2ForCausalLM: sequential.starcoder2,
  T5EncoderModel: t5Encoder,
  T5ForConditionalGeneration: t5,
  UMT5EncoderModel: t5Encoder,
  UMT5ForConditionalGeneration: t5,
  WhisperForConditionalGeneration: whisper,
  XLMRobertaForMaskedLM: encoders.roberta,
  XLMRobertaForSequenceClassification: rankers.robertaRanker,
  XLMRobertaModel: encoders.roberta,
} as const satisfies Record<string, Architecture>;

/** Version 1.0 has its embedding as the output. Recent configurations say `tie_word_embeddings` of all versions. */
const t5Of = (config: Config): Architecture =>
  config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", true)) ? t5Tied : t5;

/** Families within a class, by their configuration. */
const VARIANTS: Readonly<Record<string, (config: Config) => Architecture | undefined>> = {
  // Mistral Small 3.1 and 3.2 are Llama; later models are a separate family
  Mistral3ForConditionalGeneration: (config) => (config.find("model_type") === "mistral" ? llama : undefined),
  T5ForConditionalGeneration: t5Of,
  UMT5ForConditionalGeneration: t5Of,
  Qwen3ForCausalLM: (config) => (rankers.isNamedReranker(config) ? rankers.qwen3Answers : undefined),
  NemotronHForCausalLM: (config) => (nemotronHasExperts(config) ? nemotronHMoe : undefined),
};

/** Throws `unsupported` naming the architecture and the known ones. */
export function findArchitecture(config: JsonObject, label: string): Architecture {
  const listed = config["architectures"];
  const name: unknown = Array.isArray(listed) ? listed[0] : undefined;
  const found = Object.entries<Architecture>(convertible).find(([known]) => known === name)?.[1];
  const variant = typeof name === "string" && Object.hasOwn(VARIANTS, name) ? VARIANTS[name] : undefined;
  if (found) return variant?.(configOf(textConfig(config), `${label}: 'config.json'`)) ?? found;
  const known = Object.keys(convertible).join(", ");
  const problem = typeof name === "string" ? `unsupported architecture ${describe(name)}` : "unknown architecture";
  throw new AppError("unsupported", `${problem}: ${label}: 'architectures': expected one of ${known}`);
}
