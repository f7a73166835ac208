/** The text model of Llama 3.2 Vision, `mllama`: Llama with layers of cross attention. */
import { u32, type Architecture, type TensorTable } from "../architecture.ts";
import { decoderMetadata, headsOf, llamaTable } from "../decoder.ts";
import { llama3Factors } from "../rope.ts";

export const mllama: Architecture = {
  arch: "mllama",
  activations: ["silu"],
  metadata: (config) => ({
    ...decoderMetadata(config),
    "rope.dimension_count": u32(headsOf(config).headDim),
    "attention.cross_attention_layers": Uint32Array.from(config.findNumbers("cross_attention_layers") ?? []),
  }),
  tensors: (config) => ({ ...llamaTable({ heads: headsOf(config) }), ...selfAttention(headsOf(config)), ...CROSS }),
  computed: (config) => llama3Factors(config, headsOf(config).headDim),
};

/** Layers have either kind of attention. */
const selfAttention = ({ nHeads, nKvHeads }: { nHeads: number; nKvHeads: number }): TensorTable => ({
  "layers.*.self_attn.q_proj": { to: "blk.*.attn_q", pairedHeads: nHeads, optional: "layers" },
  "layers.*.self_attn.k_proj": { to: "blk.*.attn_k", pairedHeads: nKvHeads, optional: "layers" },
  "layers.*.self_attn.v_proj": { to: "blk.*.attn_v", optional: "layers" },
  "layers.*.self_attn.o_proj": { to: "blk.*.attn_output", optional: "layers" },
});

const CROSS: TensorTable = Object.fromEntries(
  [
    ...["q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"].map(
      (name) => [`cross_attn.${name}`, name] as const,
    ),
    ...["attn_gate", "mlp_gate"].map((name) => [`cross_attn_${name}`, name] as const),
  ].map(([from, name]) => [`layers.*.${from}`, { to: `blk.*.cross_attn_${name}`, optional: "layers" }] as const),
);
