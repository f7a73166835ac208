/** Families with a repair of a few lines: OLMo 3, Laguna, DeepSeek-OCR, encoders with a Unigram tokenizer. */
import { AppError } from "../../../../base/index.ts";
import { getStrings } from "../keys.ts";
import { MEDIA_TENSORS, type Repair } from "./repair.ts";

export const olmo3: Repair = {
  family: "OLMo 3",
  applies: (draft) => draft.arch === "olmo3",
  apply(draft) {
    draft.arch = "olmo2"; // the same steps
    draft.setPre("dbrx");
  },
};

export const laguna: Repair = {
  family: "Laguna",
  applies: (draft) =>
    draft.arch === "laguna" && (draft.has("rope.swa.freq_base") || draft.hasTensor("blk.0.attn_g.weight")),
  apply(draft) {
    draft.move("rope.swa.dimension_count", "rope.dimension_count_swa");
    draft.move("rope.swa.freq_base", "rope.freq_base_swa");
    draft.move("rope.scaling.beta_fast", "rope.scaling.yarn_beta_fast");
    draft.move("rope.scaling.beta_slow", "rope.scaling.yarn_beta_slow");
    for (const key of ["partial_rotary_factor", "scaling.factor", "scaling.type"]) draft.delete(`rope.swa.${key}`);
    draft.delete("rope.partial_rotary_factor");
    for (const key of ["gating_type", "layer_types", "qk_norm", "sink_enabled"]) draft.delete(`attention.${key}`);
    draft.rename(/\.attn_g\./, ".attn_gate.");
  },
};

export const deepseekOcr: Repair = {
  family: "DeepSeek-OCR",
  applies: (draft) => draft.arch === "deepseekocr",
  apply(draft) {
    draft.arch = "deepseek2-ocr";
    draft.setDefault("attention.layer_norm_rms_epsilon", Math.fround(1e-6));
    const blk = `blk.${draft.number("leading_dense_block_count", 0)}`;
    const ffnDim = draft.shape(`${blk}.ffn_gate_exps.weight`)[1]!;
    draft.setDefault("expert_feed_forward_length", ffnDim);
    draft.setDefault("expert_shared_count", Math.floor(draft.shape(`${blk}.ffn_gate_shexp.weight`)[1]! / ffnDim));
    draft.hide(MEDIA_TENSORS);
  },
};

const CHARSMAP = "tokenizer.ggml.precompiled_charsmap";

/** The character normalization map: bytes, stored as base64 in a list with one character per item. */
export const charsmap: Repair = {
  family: "encoders with a Unigram tokenizer",
  applies: ({ metadata }) => {
    const stored = metadata.get(CHARSMAP);
    return Array.isArray(stored) && typeof stored[0] === "string";
  },
  apply({ metadata, path }) {
    const text = getStrings(metadata, CHARSMAP).join("");
    try {
      metadata.set(CHARSMAP, Uint8Array.fromBase64(text));
    } catch (error) {
      throw new AppError("bad_file", `${path}: '${CHARSMAP}': expected base64, got ${text.slice(0, 20)}…`, {
        cause: error,
      });
    }
  },
};
