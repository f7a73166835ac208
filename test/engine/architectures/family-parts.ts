/** Tensors of layers by their names and shapes, and keys that go with them, for the models of families.ts. */
import type { WriteValue } from "../../../src/engine/formats/files/write.ts";

export type Shapes = Readonly<Record<string, readonly number[]>>;

/** A model, tensor by tensor. */
export interface Family {
  readonly arch: string;
  readonly keys: Readonly<Record<string, WriteValue>>;
  /** Tensors outside of layers, besides the embedding and the last norm. */
  readonly shapes?: Shapes;
  readonly outputNorm?: string;
  /** Default: `DIM`. */
  readonly dim?: number;
  /** Tensors of a layer, without `blk.N.`; `.weight` is added to a name without a dot. */
  readonly layers: readonly Shapes[];
}

export const VOCAB = 64;
export const DIM = 64;
export const HEAD = 16;
export const FFN = 96;
export const EXPERTS = 4;
export const EXPERT_FFN = 32;

export const f32 = (value: number): WriteValue => ({ f32: value });
export const u32 = (value: number): WriteValue => ({ u32: value });
export const each = (count: number, layer: (i: number) => Shapes): Shapes[] =>
  Array.from({ length: count }, (_, i) => layer(i));

export const heads = (nHeads: number, nKvHeads: number, headDim = HEAD) => ({
  "attention.head_count": u32(nHeads),
  "attention.head_count_kv": u32(nKvHeads),
  "attention.key_length": u32(headDim),
  "attention.value_length": u32(headDim),
  "rope.dimension_count": u32(headDim),
});
export const experts = {
  expert_count: u32(EXPERTS),
  expert_used_count: u32(2),
  expert_feed_forward_length: u32(EXPERT_FFN),
};

export const attention = (nHeads = 4, nKvHeads = 2, headDim = HEAD): Shapes => ({
  attn_q: [DIM, nHeads * headDim],
  attn_k: [DIM, nKvHeads * headDim],
  attn_v: [DIM, nKvHeads * headDim],
  attn_output: [nHeads * headDim, DIM],
});
export const headNorms = (headDim = HEAD): Shapes => ({ attn_q_norm: [headDim], attn_k_norm: [headDim] });
export const norms = (...names: readonly string[]): Shapes => Object.fromEntries(names.map((name) => [name, [DIM]]));
export const biases = (shapes: Shapes, ...names: readonly string[]): Shapes => ({
  ...shapes,
  ...Object.fromEntries(names.map((name) => [`${name}.bias`, shapes[name]!.slice(1)])),
});
export const mlp = (ffnDim = FFN, suffix = ""): Shapes => ({
  [`ffn_gate${suffix}`]: [DIM, ffnDim],
  [`ffn_up${suffix}`]: [DIM, ffnDim],
  [`ffn_down${suffix}`]: [ffnDim, DIM],
});
export const plainMlp = (): Shapes => biases({ ffn_up: [DIM, FFN], ffn_down: [FFN, DIM] }, "ffn_up", "ffn_down");
export const moe = (): Shapes => ({
  ffn_gate_inp: [DIM, EXPERTS],
  ffn_gate_exps: [DIM, EXPERT_FFN, EXPERTS],
  ffn_up_exps: [DIM, EXPERT_FFN, EXPERTS],
  ffn_down_exps: [EXPERT_FFN, DIM, EXPERTS],
});

export const mamba2 = (inner: number, state: number, groups: number, nHeads: number): Shapes => ({
  ssm_in: [DIM, 2 * inner + 2 * groups * state + nHeads],
  ssm_conv1d: [4, inner + 2 * groups * state],
  "ssm_conv1d.bias": [inner + 2 * groups * state],
  "ssm_dt.bias": [nHeads],
  "ssm_a.": [1, nHeads],
  "ssm_d.": [1, nHeads],
  ssm_norm: [inner / groups, groups],
  ssm_out: [inner, DIM],
});
export const ssm = (inner: number, state: number, groups: number, nHeads: number) => ({
  "ssm.conv_kernel": u32(4),
  "ssm.inner_size": u32(inner),
  "ssm.state_size": u32(state),
  "ssm.group_count": u32(groups),
  "ssm.time_step_rank": u32(nHeads),
});

/** A compressed vector of 32 and 8 values that turn; heads of 16 + 8, values of 16. */
const LATENT = { rank: 32, turned: 8, plain: 16, value: 16 };
export const latent = (nHeads: number, queryRank: number): Shapes => {
  const { rank, turned, plain, value } = LATENT;
  const q = nHeads * (plain + turned);
  return {
    ...(queryRank > 0
      ? { attn_q_a: [DIM, queryRank], attn_q_a_norm: [queryRank], attn_q_b: [queryRank, q] }
      : { attn_q: [DIM, q] }),
    attn_kv_a_mqa: [DIM, rank + turned],
    attn_kv_a_norm: [rank],
    attn_k_b: [plain, rank, nHeads],
    attn_v_b: [rank, value, nHeads],
    attn_output: [nHeads * value, DIM],
  };
};
export const latentKeys = {
  "attention.kv_lora_rank": u32(LATENT.rank),
  "attention.key_length": u32(LATENT.rank + LATENT.turned),
  "attention.value_length": u32(LATENT.rank),
  "attention.key_length_mla": u32(LATENT.plain + LATENT.turned),
  "attention.value_length_mla": u32(LATENT.value),
  "rope.dimension_count": u32(LATENT.turned),
};

/** With two key heads and four value heads of 16. */
export const deltaLayer: Shapes = {
  attn_qkv: [DIM, 128],
  attn_gate: [DIM, 64],
  ssm_alpha: [DIM, 4],
  ssm_beta: [DIM, 4],
  "ssm_dt.bias": [4],
  "ssm_a.": [4],
  ssm_conv1d: [4, 128],
  ssm_norm: [HEAD],
  ssm_out: [64, DIM],
};
/** Two heads of 16, with a decay per channel. */
export const kdaLayer: Shapes = {
  attn_q: [DIM, 32],
  attn_k: [DIM, 32],
  attn_v: [DIM, 32],
  ssm_conv1d_q: [4, 1, 32],
  ssm_conv1d_k: [4, 1, 32],
  ssm_conv1d_v: [4, 1, 32],
  ssm_f_a: [DIM, HEAD],
  ssm_f_b: [HEAD, 32],
  ssm_g_a: [DIM, HEAD],
  ssm_g_b: [HEAD, 32],
  ssm_beta: [DIM, 2],
  "ssm_a.": [1, 2],
  "ssm_dt.bias": [32],
  ssm_norm: [HEAD],
  attn_output: [32, DIM],
};

export const gemma3nLayer: Shapes = {
  ...attention(2, 1),
  ...headNorms(),
  ...mlp(),
  ...norms("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm"),
  ...norms("altup_correct_scale", "altup_router_norm", "laurel_post_norm"),
  inp_gate: [DIM, 256],
  proj: [256, DIM],
  altup_correct_coef: [4, 4],
  altup_predict_coef: [4, 16],
  altup_router: [DIM, 4],
  laurel_l: [DIM, 64],
  laurel_r: [64, DIM],
};
