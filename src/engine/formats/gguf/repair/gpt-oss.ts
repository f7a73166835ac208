/** gpt-oss. */
import type { Repair } from "./repair.ts";

export const gptOss: Repair = {
  family: "gpt-oss",
  applies: (draft) => draft.arch === "gptoss",
  apply(draft) {
    draft.arch = "gpt-oss";
    draft.setPre("gpt-4o");
    draft.setDefault("rope.scaling.type", "yarn");
    draft.setDefault("expert_feed_forward_length", draft.shape("blk.0.ffn_gate_exps.weight")[1]!);
    draft.rename(/\.attn_out\./, ".attn_output.");
    draft.rename(/\.attn_sinks$/, ".attn_sinks.weight");
    draft.rename(/\.ffn_norm\./, ".post_attention_norm.");
    const heads = draft.number("attention.head_count");
    const headDim = draft.number("attention.key_length", draft.number("embedding_length") / heads);
    const kvDim = draft.number("attention.head_count_kv", heads) * headDim;
    for (const name of Array.from(draft.parts.keys())) {
      const fused = /^(.*\.attn_)qkv(\..*)$/.exec(name);
      if (!fused) continue;
      const named = (letter: string): string => `${fused[1]}${letter}${fused[2]}`;
      draft.split(name, { [named("q")]: heads * headDim, [named("k")]: kvDim, [named("v")]: kvDim });
    }
  },
};
