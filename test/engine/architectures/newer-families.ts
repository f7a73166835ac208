/** Tiny models, as in families.ts: PLM, Step 3.5, and families whose layers have an indexer. */
import {
  attention,
  DIM,
  each,
  EXPERT_FFN,
  experts,
  EXPERTS,
  f32,
  FFN,
  HEAD,
  headNorms,
  heads,
  kdaLayer,
  latent,
  latentKeys,
  mlp,
  moe,
  norms,
  u32,
  VOCAB,
  type Family,
  type Shapes,
} from "./family-parts.ts";

const mixture: Shapes = { ...moe(), "exp_probs_b.bias": [EXPERTS], ...mlp(EXPERT_FFN, "_shexp") };

const mixtureKeys = {
  ...experts,
  expert_shared_count: u32(1),
  expert_gating_func: u32(2),
  expert_weights_norm: true,
  expert_weights_scale: f32(1.5),
  leading_dense_block_count: u32(1),
};

/** Heads of llama.cpp's rotation of keys have at least 64 values. */
const INDEX = 64;
/** Enough heads that no position has a score of exactly 0. */
const INDEX_HEADS = 16;
/** Fewer positions are chosen than the test's prompt has. */
const indexerKeys = {
  "attention.indexer.head_count": u32(INDEX_HEADS),
  "attention.indexer.key_length": u32(INDEX),
  "attention.indexer.top_k": u32(7),
};

const indexed = (chooses = true): Shapes => ({
  ...norms("attn_norm", "ffn_norm"),
  ...latent(4, 24),
  ...(chooses && {
    "indexer.k_norm": [INDEX],
    "indexer.k_norm.bias": [INDEX],
    "indexer.proj": [DIM, INDEX_HEADS],
    "indexer.attn_k": [DIM, INDEX],
    "indexer.attn_q_b": [24, INDEX_HEADS * INDEX],
  }),
});

const indexedKeys = {
  ...mixtureKeys,
  ...latentKeys,
  ...indexerKeys,
  "attention.head_count": u32(4),
  "attention.head_count_kv": u32(1),
  "attention.q_lora_rank": u32(24),
};

/** Tensors that compress overlapping blocks of 4 positions. */
const compressor = (name: string, headDim: number): Shapes => ({
  [`${name}_kv`]: [DIM, 2 * headDim],
  [`${name}_gate`]: [DIM, 2 * headDim],
  [`${name}_ape`]: [2 * headDim, 4],
  [`${name}_norm`]: [headDim],
});

/** Compressed vectors of 32 and 8 values that turn, unpacked to heads of 16 + 8 and values of 16. */
const compressed: Shapes = {
  attn_q: [DIM, 4 * 24],
  attn_kv_a_mqa: [DIM, 40],
  attn_kv_a_norm: [32],
  attn_kv_b: [32, 4 * 32],
  attn_output: [4 * HEAD, DIM],
};

/** Four heads, of which two share keys and values of an image. */
const crossAttention: Shapes = {
  cross_attn_q_proj: [DIM, 4 * HEAD],
  cross_attn_k_proj: [DIM, 2 * HEAD],
  cross_attn_v_proj: [DIM, 2 * HEAD],
  cross_attn_o_proj: [4 * HEAD, DIM],
  cross_attn_q_norm: [HEAD],
  cross_attn_k_norm: [HEAD],
  "cross_attn_attn_gate.": [1],
  "cross_attn_mlp_gate.": [1],
};

/** Tensors of four streams. */
const hyperConnections = {
  keys: { "hyper_connection.count": u32(4) },
  shapes: (name: string, weights: number, scales: number): Shapes => ({
    [`${name}_fn`]: [4 * DIM, weights],
    [`${name}_base`]: [weights],
    [`${name}_scale`]: [scales],
  }),
};

const { ssm_g_a: _, ssm_g_b: __, ...narrowDecays } = kdaLayer;
const fullGateLayer: Shapes = { ...narrowDecays, ssm_g: [DIM, 32], "ssm_a.": [2] };

/** The narrow vector of a single head is as wide as all heads together. */
const oneHeadLayer: Shapes = {
  ...Object.fromEntries(["attn_q", "attn_k", "attn_v", "ssm_g", "ssm_f_a"].map((name) => [name, [DIM, HEAD]])),
  ...Object.fromEntries(["q", "k", "v"].map((part) => [`ssm_conv1d_${part}`, [4, 1, HEAD]])),
  ssm_f_b: [HEAD, HEAD],
  ssm_beta: [DIM, 1],
  "ssm_a.": [1],
  "ssm_dt.bias": [HEAD],
  ssm_norm: [HEAD],
  attn_output: [HEAD, DIM],
};

/** Experts of 32 values. */
const narrowMixture: Shapes = {
  ...mixture,
  ffn_gate_exps: [32, EXPERT_FFN, EXPERTS],
  ffn_up_exps: [32, EXPERT_FFN, EXPERTS],
  ffn_down_exps: [EXPERT_FFN, 32, EXPERTS],
  ffn_routed_down: [DIM, 32],
  ffn_routed_up: [32, DIM],
  ffn_routed_norm: [32],
};

const slides = [true, false, true];
/** Four heads in global layers, eight in the others. */
const headsOf = (layer: number): number => (slides[layer] ? 8 : 4);

export const newerFamilies: Readonly<Record<string, Family>> = {
  apertus: {
    arch: "apertus",
    keys: {
      ...heads(4, 2),
      "xielu.alpha_n": new Float32Array([0.3, -0.5]),
      "xielu.alpha_p": new Float32Array([0.7, -0.2]),
      "xielu.beta": new Float32Array([0.5, 0.4]),
      "xielu.eps": new Float32Array([-1e-6, -1e-6]),
    },
    shapes: { output: [DIM, VOCAB], rope_freqs: [HEAD / 2] },
    layers: each(2, () => ({
      ...norms("attn_norm", "ffn_norm"),
      ...attention(),
      ...headNorms(),
      ffn_up: [DIM, FFN],
      ffn_down: [FFN, DIM],
    })),
  },
  plm: {
    arch: "plm",
    keys: {
      "attention.head_count": u32(4),
      "attention.head_count_kv": u32(4),
      "attention.kv_lora_rank": u32(32),
      "attention.key_length": u32(24),
      "attention.value_length": u32(HEAD),
      "rope.dimension_count": u32(8),
    },
    layers: each(2, () => ({
      ...norms("attn_norm", "ffn_norm"),
      ...compressed,
      ffn_up: [DIM, FFN],
      ffn_down: [FFN, DIM],
    })),
  },
  step35: {
    arch: "step35",
    keys: {
      ...heads(8, 2),
      ...mixtureKeys,
      "attention.head_count": Uint32Array.from([0, 1, 2], headsOf),
      "attention.head_count_kv": new Uint32Array([2, 2, 2]),
      "attention.sliding_window": u32(6),
      "attention.sliding_window_pattern": slides,
      "rope.freq_base": f32(5e5),
      "rope.freq_base_swa": f32(1e4),
      expert_shared_feed_forward_length: u32(EXPERT_FFN),
      swiglu_clamp_exp: new Float32Array([0, 0.5, 0]),
      swiglu_clamp_shexp: new Float32Array([0.4, 0, 0.3]),
    },
    shapes: { output: [DIM, VOCAB], rope_freqs: [HEAD / 2] },
    layers: each(3, (i) => ({
      ...norms("attn_norm", "ffn_norm"),
      ...attention(headsOf(i), 2),
      ...headNorms(),
      attn_gate: [DIM, headsOf(i)],
      ...(i === 0 ? mlp() : mixture),
    })),
  },
  mllama: {
    arch: "mllama",
    keys: { ...heads(4, 2), "attention.cross_attention_layers": new Int32Array([1]) },
    shapes: { output: [DIM, VOCAB], rope_freqs: [HEAD / 2] },
    layers: each(3, (i) => ({
      ...norms("attn_norm", "ffn_norm"),
      ...(i === 1 ? crossAttention : attention()),
      ...mlp(),
    })),
  },
  deepseek32: {
    arch: "deepseek32",
    keys: {
      ...indexedKeys,
      "rope.scaling.type": "yarn",
      "rope.scaling.factor": f32(4),
      "rope.scaling.original_context_length": u32(64),
      "rope.scaling.yarn_log_multiplier": f32(0.1),
      "attention.indexer.block_size": u32(0), // as llama.cpp writes it
    },
    shapes: { output: [DIM, VOCAB] },
    layers: each(2, (i) => ({ ...indexed(), ...(i === 0 ? mlp() : mixture) })),
  },
  "glm-dsa": {
    arch: "glm-dsa",
    keys: { ...indexedKeys, expert_gating_func: u32(0), "attention.indexer.types": [true, false, true] },
    shapes: { output: [DIM, VOCAB] },
    layers: each(3, (i) => ({ ...indexed(i !== 1), ...(i === 0 ? mlp() : mixture) })),
  },
  deepseek4: {
    arch: "deepseek4",
    keys: {
      ...heads(4, 1, 32), // other heads than the indexer's: else llama.cpp fails
      ...experts,
      ...indexerKeys,
      "rope.dimension_count": u32(8),
      "attention.indexer.top_k": u32(2),
      "attention.q_lora_rank": u32(24),
      "attention.sliding_window": u32(5),
      "attention.output_group_count": u32(2),
      "attention.output_lora_rank": u32(24),
      "attention.compress_ratios": new Uint32Array([0, 4, 4]),
      "attention.compress_rope_freq_base": f32(500),
      "rope.scaling.type": "yarn",
      "rope.scaling.factor": f32(4),
      "rope.scaling.original_context_length": u32(64),
      "hyper_connection.count": u32(4),
      "hyper_connection.epsilon": f32(0.01),
      "hyper_connection.sinkhorn_iterations": u32(3),
      hash_layer_count: u32(2),
      expert_shared_count: u32(1),
      expert_gating_func: u32(4),
      expert_weights_norm: true,
      expert_weights_scale: f32(1.5),
      swiglu_clamp_exp: new Float32Array([0.5, 0.5, 0.3]),
      swiglu_clamp_shexp: new Float32Array([0.4, 0.5, 0.6]),
    },
    shapes: { output: [DIM, VOCAB], ...hyperConnections.shapes("output_hc", 4, 1) },
    layers: each(3, (i) => ({
      ...norms("attn_norm", "ffn_norm"),
      attn_q_a: [DIM, 24],
      attn_q_a_norm: [24],
      attn_q_b: [24, 4 * 32],
      attn_kv: [DIM, 32],
      attn_kv_a_norm: [32],
      attn_sinks: [4],
      attn_output_a: [2 * 32, 2 * 24],
      attn_output_b: [2 * 24, DIM],
      ...(i > 0 && {
        ...compressor("attn_compressor", 32),
        ...compressor("indexer_compressor", INDEX),
        "indexer.proj": [DIM, INDEX_HEADS],
        "indexer.attn_q_b": [24, INDEX_HEADS * INDEX],
      }),
      ...hyperConnections.shapes("hc_attn", 24, 3),
      ...hyperConnections.shapes("hc_ffn", 24, 3),
      ...moe(),
      ...mlp(EXPERT_FFN, "_shexp"),
      ...(i < 2 ? { ffn_gate_tid2eid: [2, VOCAB] } : { "exp_probs_b.bias": [EXPERTS] }),
    })),
  },
  hy_v4: {
    arch: "hy_v4",
    keys: {
      ...indexedKeys,
      "attention.indexer.types": [true, false, true],
      swiglu_clamp_exp: new Float32Array([0.5, 0.5, 0.3]),
      ...hyperConnections.keys,
      "hyper_connection.epsilon": f32(0.01),
      "hyper_connection.magnitude": f32(1.5),
    },
    shapes: { output: [DIM, VOCAB], ...hyperConnections.shapes("output_hc", 4, 1) },
    layers: each(3, (i) => ({
      ...indexed(i !== 1),
      attn_sinks: [4],
      attn_gate: [DIM, 4 * HEAD],
      ...hyperConnections.shapes("hc_attn", 8, 2),
      ...hyperConnections.shapes("hc_ffn", 8, 2),
      ...(i === 0 ? mlp() : mixture),
    })),
  },
  "kimi-k3": {
    arch: "kimi-k3",
    keys: {
      ...mixtureKeys,
      ...latentKeys,
      "attention.head_count": u32(2),
      "attention.head_count_kv": new Uint32Array([0, 1, 0, 1, 0]),
      "attention.q_lora_rank": u32(24),
      "kda.head_dim": u32(HEAD),
      "kda.gate_lower_bound": f32(-5),
      "ssm.conv_kernel": u32(4),
      "attn_res.block_size": u32(2),
      expert_latent_length: u32(32),
      "activation.situ_beta": f32(0.7),
      "activation.situ_linear_beta": f32(0.9),
    },
    shapes: { output: [DIM, VOCAB], output_res_score: [DIM] },
    layers: each(5, (i) => ({
      ...norms("attn_norm", "ffn_norm", "attn_res_score", "ffn_res_score"),
      ...(i % 2 === 0 ? fullGateLayer : { ...latent(2, 24), attn_gate: [DIM, 2 * HEAD] }),
      ...(i === 0 ? mlp() : narrowMixture),
    })),
  },
  "kimi-k3-head": {
    arch: "kimi-k3",
    keys: {
      ...mixtureKeys,
      ...latentKeys,
      "attention.head_count": u32(1),
      "attention.head_count_kv": new Uint32Array([0, 1, 0]),
      "attention.q_lora_rank": u32(24),
      "kda.head_dim": u32(HEAD),
      "kda.gate_lower_bound": f32(-5),
      "ssm.conv_kernel": u32(4),
      "attn_res.block_size": u32(2),
      expert_latent_length: u32(32),
      "activation.situ_beta": f32(0.7),
      "activation.situ_linear_beta": f32(0.9),
    },
    shapes: { output: [DIM, VOCAB], output_res_score: [DIM] },
    layers: each(3, (i) => ({
      ...norms("attn_norm", "ffn_norm", "attn_res_score", "ffn_res_score"),
      ...(i % 2 === 0 ? oneHeadLayer : { ...latent(1, 24), attn_gate: [DIM, HEAD] }),
      ...(i === 0 ? mlp() : narrowMixture),
    })),
  },
  "minimax-m3": {
    arch: "minimax-m3",
    keys: {
      ...heads(4, 2),
      ...mixtureKeys,
      ...indexerKeys,
      "attention.indexer.head_count": u32(2),
      "attention.indexer.top_k": u32(64), // llama.cpp chooses with flash attention only
      "attention.indexer.block_size": u32(4),
      "attention.indexer.local_blocks": u32(1),
      "rope.dimension_count": u32(8),
    },
    shapes: { output: [DIM, VOCAB] },
    layers: each(2, (i) => ({
      ...norms("attn_norm", "ffn_norm"),
      ...attention(),
      ...headNorms(),
      ...(i === 0
        ? mlp()
        : {
            ...mixture,
            "indexer.q_proj": [DIM, 2 * INDEX],
            "indexer.k_proj": [DIM, INDEX],
            "indexer.q_norm": [INDEX],
            "indexer.k_norm": [INDEX],
          }),
    })),
  },
};
