/**
 * Tiny embedding models, as outlines (outlines.ts): encoders, and decoders whose files ask for bidirectional attention.
 * `embeddings/NAME.f32` holds llama.cpp's vector of OUTLINE_TOKENS, of unit length, written by
 * bench/record-embeddings.ts.
 */
import { OUTLINE_VOCAB, readOutlines, type Outline } from "./outlines.ts";

type Shapes = Readonly<Record<string, readonly number[]>>;

const DIM = 64;
const FFN = 96;
const HEADS = 4;

const numbers = (more: Readonly<Record<string, number>>) => ({
  context_length: 256,
  embedding_length: DIM,
  block_count: 3,
  feed_forward_length: FFN,
  "attention.head_count": HEADS,
  pooling_type: 1,
  ...more,
});
const RMS = { "attention.layer_norm_rms_epsilon": 1e-5 };
const LAYER = { "attention.layer_norm_epsilon": 1e-5 };

/** `.weight` of each, and `.bias` for names with `+`. */
function tensors(shapes: Shapes): Shapes {
  const all: Record<string, readonly number[]> = { "token_embd.weight": [DIM, OUTLINE_VOCAB] };
  for (const [name, shape] of Object.entries(shapes)) {
    const [plain = name, biased] = name.split("+");
    all[`${plain}.weight`] = shape;
    if (biased !== undefined) all[`${plain}.bias`] = shape.slice(-1);
  }
  return all;
}
const inLayers = (shapes: Shapes, layers = "0,1,2", blk = "blk"): Shapes =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [`${blk}.${layers}.${name}`, shape]));

const square = [DIM, DIM];
const row = [DIM];
const bertLayer: Shapes = {
  "attn_q+": square,
  "attn_k+": square,
  "attn_v+": square,
  "attn_output+": square,
  "attn_output_norm+": row,
  "layer_output_norm+": row,
};
const bertStart: Shapes = { token_types: [DIM, 2], "token_embd_norm+": row };
const gated: Shapes = { ffn_gate: [DIM, FFN], ffn_up: [DIM, FFN], ffn_down: [FFN, DIM] };
const fused: Shapes = { ffn_up: [DIM, 2 * FFN], ffn_down: [FFN, DIM] };
const { ffn_down: down } = gated;

const modernBert = (others: Outline["others"], more: Readonly<Record<string, number>>): Outline => ({
  arch: "modern-bert",
  numbers: numbers({ ...LAYER, "rope.freq_base": 160_000, "rope.freq_base_swa": 1000, ...more }),
  others: { "attention.causal": false, ...others },
  shapes: tensors({
    token_embd_norm: row,
    output_norm: row,
    ...inLayers({ attn_norm: row }, "1,2"),
    ...inLayers({ attn_qkv: [DIM, 3 * DIM], attn_output: square, ffn_norm: row, ...fused }),
  }),
});

const t5Layer: Shapes = {
  attn_norm: row,
  attn_q: square,
  attn_k: square,
  attn_v: square,
  attn_o: square,
  ffn_norm: row,
};
const BUCKETS = 32;

/** @param biased layers with a table of biases; MLPs are gated as of version 1.1 */
const t5 = (biased: string, isGated: boolean): Outline => ({
  arch: "t5encoder",
  numbers: numbers({ ...RMS, "attention.relative_buckets_count": BUCKETS }),
  others: { "attention.causal": false },
  shapes: tensors({
    "enc.output_norm": row,
    ...inLayers({ attn_rel_b: [HEADS, BUCKETS] }, biased, "enc.blk"),
    ...inLayers({ ...t5Layer, ffn_up: [DIM, FFN], ffn_down: down!, ...(isGated && gated) }, "0,1,2", "enc.blk"),
  }),
});

const own: Readonly<Record<string, Outline>> = {
  t5encoder: t5("0", false),
  "t5encoder-gated": t5("0,1,2", true),
  "modern-bert": modernBert({}, { "attention.sliding_window": 8 }),
  "modern-bert-silu": modernBert({ hidden_activation: "silu" }, {}),
  "jina-bert-v2": {
    arch: "jina-bert-v2",
    numbers: numbers(LAYER),
    others: { "attention.causal": false },
    shapes: tensors({ ...bertStart, ...inLayers({ ...bertLayer, ...gated, "ffn_down+": down! }) }),
  },
  "jina-bert-v2-norms": {
    arch: "jina-bert-v2",
    numbers: numbers(LAYER),
    others: { "attention.causal": false },
    shapes: tensors({
      ...bertStart,
      ...inLayers({
        ...bertLayer,
        "attn_q_norm+": row,
        "attn_k_norm+": row,
        "attn_norm_2+": row,
        ffn_up: [DIM, 2 * FFN],
        "ffn_down+": down!,
      }),
    }),
  },
  "jina-bert-v3": {
    arch: "jina-bert-v3",
    numbers: numbers({ ...LAYER, "rope.freq_base": 20_000 }),
    others: { "attention.causal": false },
    shapes: tensors({
      ...bertStart,
      ...inLayers({ ...bertLayer, "ffn_up+": [DIM, FFN], "ffn_down+": down! }),
    }),
  },
  "nomic-bert-moe": {
    arch: "nomic-bert-moe",
    numbers: numbers({
      ...LAYER,
      "rope.freq_base": 10_000,
      moe_every_n_layers: 2,
      expert_count: 4,
      expert_used_count: 2,
    }),
    others: { "attention.causal": false },
    shapes: tensors({
      ...bertStart,
      ...inLayers(bertLayer),
      ...inLayers({ "ffn_up+": [DIM, FFN], "ffn_down+": down! }, "0,2"),
      ...inLayers({ ffn_gate_inp: [DIM, 4], ffn_up_exps: [DIM, FFN, 4], ffn_down_exps: [FFN, DIM, 4] }, "1"),
    }),
  },
  eurobert: {
    arch: "eurobert",
    numbers: numbers({ ...RMS, "attention.head_count_kv": 2, "rope.freq_base": 250_000 }),
    others: { "attention.causal": false, "rope.scaling.type": "none" },
    shapes: tensors({
      output_norm: row,
      ...inLayers({
        attn_norm: row,
        attn_q: square,
        attn_k: [DIM, DIM / 2],
        attn_v: [DIM, DIM / 2],
        attn_output: square,
        ffn_norm: row,
        ...gated,
      }),
    }),
  },
  "neo-bert": {
    arch: "neo-bert",
    numbers: numbers({ ...RMS, "rope.freq_base": 10_000 }),
    others: { "attention.causal": false, "rope.scaling.type": "none" },
    shapes: tensors({
      "enc.output_norm": row,
      ...inLayers({ attn_norm: row, attn_qkv: [DIM, 3 * DIM], attn_output: square, ffn_norm: row, ...fused }),
    }),
  },
};

/** Bidirectional decoders, by the outline from which they are made. */
const TWO_SIDED: Readonly<Record<string, string>> = {
  "llama-embed": "llama-dense",
  llama: "llama-dense",
  qwen2: "qwen2-dense",
  qwen3: "qwen3-dense",
  qwen3moe: "qwen3moe-moe",
  gemma: "gemma-dense",
  lfm2: "lfm2-dense",
};

/** llama.cpp's decoders have no bidirectional window. */
const UNWINDOWED = { pooling_type: 1, "attention.sliding_window": 0 };

/** By name. */
export function readEmbedders(): ReadonlyMap<string, Outline> {
  const outlines = readOutlines();
  const turned = Object.entries(TWO_SIDED).map(([arch, name]): [string, Outline] => {
    const { numbers: given, others, shapes } = outlines.get(name)!;
    const said = { ...others, "attention.causal": false };
    return [`${arch}-two-sided`, { arch, numbers: { ...given, ...UNWINDOWED }, others: said, shapes }];
  });
  return new Map([...Object.entries(own), ...turned]);
}
