/**
 * Pulls from the public library: percent of all pulls of the three months up to 2026-08-21 (counts of the library's
 * pages, which round those above a million to 0.1 M), and the requirements of the models' default tags. Cloud-only
 * models are left out. The rest up to 100 % are models of less than 0.1 % each.
 */
import type { Renderer } from "../../src/engine/text/template/named.ts";

export interface Pulled {
  readonly models: string;
  /** In percent of all pulls. */
  readonly share: number;
  /** `general.architecture` by llama.cpp's names; several: the row's models need all of them. */
  readonly archs: readonly string[];
  /** Prompt renderers, if neither file nor manifest has a template. */
  readonly renderers?: readonly Renderer[];
  /** `clip.projector_type` of the image encoder, for vision models. */
  readonly sees?: readonly string[];
}

export const PULLED: readonly Pulled[] = [
  { models: "Llama 2 and 3, Mistral, Mixtral, TinyLlama, SmolLM, CodeLlama …", share: 20.5, archs: ["llama"] },
  {
    models: "Qwen 1.5, 2, 2.5, QwQ, DeepSeek R1",
    share: 14.0,
    archs: ["qwen2", "qwen3", "llama", "deepseek2"],
  },
  {
    models: "Gemma 4",
    share: 9.9,
    archs: ["gemma4"],
    renderers: ["gemma4-small", "gemma4-large"],
    sees: ["gemma4v", "gemma4uv"],
  },
  { models: "Nomic Embed", share: 9.0, archs: ["nomic-bert"] },
  {
    models: "Qwen 3.5, 3.6, 3.8, Ornith",
    share: 8.5,
    archs: ["qwen35", "qwen35moe"],
    renderers: ["qwen3.5", "qwen3.8", "ornith"],
    sees: ["qwen3vl_merger"],
  },
  { models: "Qwen 3, Qwen3 Embedding", share: 5.6, archs: ["qwen3", "qwen3moe"] },
  { models: "Gemma 2, ShieldGemma", share: 5.3, archs: ["gemma2"] },
  { models: "GLM-OCR", share: 4.7, archs: ["glm4"], renderers: ["glm-ocr"], sees: ["glm4v"] },
  {
    models: "Gemma 3, TranslateGemma, MedGemma, FunctionGemma",
    share: 2.8,
    archs: ["gemma3"],
    renderers: ["functiongemma"],
    sees: ["gemma3"],
  },
  { models: "mxbai, MiniLM, BGE, Arctic Embed", share: 2.4, archs: ["bert"] },
  { models: "Qwen3-Coder", share: 2.2, archs: ["qwen3moe"], renderers: ["qwen3-coder"] },
  { models: "Qwen 2.5 VL", share: 1.8, archs: ["qwen2vl"], sees: ["qwen2.5vl_merger"] },
  { models: "gpt-oss", share: 1.7, archs: ["gpt-oss"] },
  { models: "BGE-M3 and other embeddings with a t5 vocabulary", share: 1.3, archs: ["bert"] },
  {
    models: "Qwen 3 VL",
    share: 1.1,
    archs: ["qwen3vl", "qwen3vlmoe"],
    renderers: ["qwen3-vl-instruct", "qwen3-vl-thinking"],
    sees: ["qwen3vl_merger"],
  },
  { models: "Phi 3, 3.5, 4", share: 0.9, archs: ["phi3"] },
  { models: "Mistral Small 3, Ministral 3, Devstral 2", share: 0.9, archs: ["mistral3"], sees: ["pixtral"] },
  {
    models: "Nemotron 3",
    share: 0.9,
    archs: ["nemotron_h", "nemotron_h_moe"],
    renderers: ["nemotron-3-nano", "nemotron-3.5-nano"],
  },
  {
    models: "DeepSeek V2, V3, Coder V2, GLM 4.7 Flash",
    share: 0.7,
    archs: ["deepseek2"],
    renderers: ["deepseek3.1", "glm-4.7"],
  },
  { models: "Qwen3-Coder-Next, Qwen3-Next", share: 0.5, archs: ["qwen3next"], renderers: ["qwen3-coder"] },
  { models: "LLaVA, BakLLaVA", share: 0.5, archs: ["llama", "phi3"], sees: ["mlp"] },
  { models: "Granite 3, 4.1", share: 0.5, archs: ["granite", "granitemoe"] },
  { models: "Llama 3.2 Vision", share: 0.4, archs: ["mllama"], sees: ["mllama"] },
  { models: "EmbeddingGemma", share: 0.4, archs: ["gemma-embedding"] },
  { models: "Nomic Embed 2", share: 0.4, archs: ["nomic-bert-moe"] },
  { models: "Gemma 3n", share: 0.4, archs: ["gemma3n"] },
  { models: "Moondream", share: 0.3, archs: ["phi2"], sees: ["mlp"] },
  { models: "Gemma, CodeGemma", share: 0.2, archs: ["gemma"] },
  { models: "StableLM 2, Stable Code", share: 0.2, archs: ["stablelm"] },
  { models: "Command R, Aya", share: 0.2, archs: ["command-r"] },
  { models: "LFM2, LFM2.5", share: 0.2, archs: ["lfm2", "lfm2moe"], renderers: ["lfm2", "lfm2-thinking"] },
  { models: "Laguna", share: 0.2, archs: ["laguna"], renderers: ["laguna", "poolside-v1"] },
  { models: "MiniCPM-V", share: 0.1, archs: ["qwen2", "llama"], sees: ["resampler"] },
  { models: "Granite 4", share: 0.1, archs: ["granitehybrid", "granite"] },
  { models: "StarCoder 2", share: 0.1, archs: ["starcoder2"] },
  { models: "Command A, R7B, Aya Expanse", share: 0.1, archs: ["cohere2"] },
  { models: "GLM 4", share: 0.1, archs: ["chatglm"] },
  { models: "Phi 2, Dolphin Phi", share: 0.1, archs: ["phi2"] },
  { models: "EXAONE, InternLM 2, Falcon, OLMo 3", share: 0.1, archs: ["exaone", "internlm2", "falcon", "olmo2"] },
];
