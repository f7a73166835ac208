/** gpt-oss. */
import type { Repair } from "./repair.ts";

export const gptOss: Repair = {
  family: "gpt-oss",
  applies: (header) => header.arch === "gptoss",
  apply(header) {
    header.arch = "gpt-oss";
    header.setPre("gpt-4o");
    header.setDefault("rope.scaling.type", "yarn");
    header.setDefault("expert_feed_forward_length", header.shape("blk.0.ffn_gate_exps.weight")[1]!);
    header.rename(/\.attn_out\./, ".attn_output.");
    header.rename(/\.attn_sinks$/, ".attn_sinks.weight");
    header.rename(/\.ffn_norm\./, ".post_attention_norm.");
    const heads = header.number("attention.head_count");
    const headDim = header.number("attention.key_length", header.number("embedding_length") / heads);
    const kvDim = header.number("attention.head_count_kv", heads) * headDim;
    for (const name of Array.from(header.parts.keys())) {
      const fused = /^(.*\.attn_)qkv(\..*)$/.exec(name);
      if (!fused) continue;
      const named = (letter: string): string => `${fused[1]}${letter}${fused[2]}`;
      header.split(name, { [named("q")]: heads * headDim, [named("k")]: kvDim, [named("v")]: kvDim });
    }
  },
};
