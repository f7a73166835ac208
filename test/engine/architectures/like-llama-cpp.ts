/**
 * Program → program: the factors (`Weight.scale`) and the GELU that llama.cpp applies, for comparisons with its logits.
 * It loads the `.scale` tensors of every architecture, but passes them on in some only, and then multiplies the biases
 * of an MLP too; its own random models have such tensors everywhere.
 */
import type { Program } from "../../../src/engine/program/backend.ts";
import { withWeights } from "../../../src/engine/program/describe.ts";
import type { Step, Weight } from "../../../src/engine/program/step.ts";

/** Architectures whose MLPs and experts have factors. (arguments of build_ffn and build_moe_ffn, src/models) */
const MLPS = new Set(
  `bitnet cohere2 cohere2moe deepseek32 gemma4 glm-dsa hy_v3 llama llama-embed mellum mistral3 nanbeige nemotron_h
  nemotron_h_moe qwen3 qwen35 qwen35moe qwen3moe qwen3next`.split(/\s+/),
);

/** Names of further matrices without factors, by architecture. */
const OTHERS: Readonly<Record<string, RegExp>> = {
  bailingmoe3: /attn_(q|k|v|output)\.|ssm_beta/,
  cogvlm: /attn_qkv/,
  hy_v4: /./,
  "kimi-k3": /attn_(q|k|v|output)\.|ssm_beta/,
  "kimi-linear": /attn_[qkv]\.|blk\.1\.attn_output|ssm_beta/, // layer 1 has a delta rule
  mimo2: /attn_[qkv]\./,
  openelm: /attn_qkv/,
  plamo2: /attn_qkv|ssm_(in|out)\./,
  plamo3: /attn_qkv/,
  qwen3next: /attn_qkv|ssm_(in|out)\./,
};

/** Architectures whose gates of attention have factors. */
const GATES = new Set(["qwen35", "qwen35moe"]);

/** Architectures whose GELU it approximates. */
const APPROXIMATED = new Set(["falcon", "gptneox", "mpt"]);

export function likeLlamaCpp(program: Program): Program {
  const { arch } = program.shape;
  const hasFactor = ({ name }: Weight): boolean => {
    if (/\.ffn_(gate|up|down)(_exps|_shexp)?\./.test(name)) return MLPS.has(arch) || isDownOfTalkie(arch, name);
    return name.includes("attn_gate.") ? GATES.has(arch) : !OTHERS[arch]?.test(name);
  };
  const steps = program.steps.map((step) =>
    withScaledBiases(
      withWeights(step, (weight) => {
        const { scale, ...bare } = weight;
        return scale && !hasFactor(weight) ? bare : weight;
      }),
    ),
  );
  return { ...program, steps: APPROXIMATED.has(arch) ? steps.map(approximated) : steps };
}

const isDownOfTalkie = (arch: string, name: string): boolean => arch === "talkie" && name.includes("ffn_down.");

const approximated = (step: Step): Step =>
  step.op === "mlp" && step.act === "gelu_erf" ? { ...step, act: "gelu" } : step;

function withScaledBiases(step: Step): Step {
  if (step.op !== "mlp" && step.op !== "gatedMlp") return step;
  const scaled = (bias: Weight | undefined, { scale }: Weight): Weight | undefined =>
    bias && scale ? { ...bias, scale } : bias;
  const upB = scaled(step.upB, step.up);
  const downB = scaled(step.downB, step.down);
  const gateB = step.op === "gatedMlp" ? scaled(step.gateB, step.gate) : undefined;
  return { ...step, ...(upB && { upB }), ...(downB && { downB }), ...(gateB && { gateB }) } as Step;
}
