/** Families with a repair of a few lines: OLMo 3, Laguna, DeepSeek-OCR, encoders with Unigram, RWKV World. */
import { AppError } from "../../../../base/index.ts";
import { getStrings } from "../keys.ts";
import { MEDIA_TENSORS, type Repair } from "./repair.ts";

export const olmo3: Repair = {
  family: "OLMo 3",
  applies: (header) => header.arch === "olmo3",
  apply(header) {
    header.arch = "olmo2"; // the same steps
    header.setPre("dbrx");
  },
};

export const laguna: Repair = {
  family: "Laguna",
  applies: (header) =>
    header.arch === "laguna" && (header.has("rope.swa.freq_base") || header.hasTensor("blk.0.attn_g.weight")),
  apply(header) {
    header.move("rope.swa.dimension_count", "rope.dimension_count_swa");
    header.move("rope.swa.freq_base", "rope.freq_base_swa");
    header.move("rope.scaling.beta_fast", "rope.scaling.yarn_beta_fast");
    header.move("rope.scaling.beta_slow", "rope.scaling.yarn_beta_slow");
    for (const key of ["partial_rotary_factor", "scaling.factor", "scaling.type"]) header.delete(`rope.swa.${key}`);
    header.delete("rope.partial_rotary_factor");
    for (const key of ["gating_type", "layer_types", "qk_norm", "sink_enabled"]) header.delete(`attention.${key}`);
    header.rename(/\.attn_g\./, ".attn_gate.");
  },
};

export const deepseekOcr: Repair = {
  family: "DeepSeek-OCR",
  applies: (header) => header.arch === "deepseekocr",
  apply(header) {
    header.arch = "deepseek2-ocr";
    header.setDefault("attention.layer_norm_rms_epsilon", Math.fround(1e-6));
    const blk = `blk.${header.number("leading_dense_block_count", 0)}`;
    const ffnDim = header.shape(`${blk}.ffn_gate_exps.weight`)[1]!;
    header.setDefault("expert_feed_forward_length", ffnDim);
    header.setDefault("expert_shared_count", Math.floor(header.shape(`${blk}.ffn_gate_shexp.weight`)[1]! / ffnDim));
    header.hide(MEDIA_TENSORS);
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

const TEMPLATE = "tokenizer.chat_template";
/** A turn ends with an empty line: this token ends an answer. */
export const WORLD_TURNS =
  "{% for message in messages %}{{ (message.role | capitalize) ~ ': ' ~ (message.content | trim) ~ '\n\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}";

/** Earlier converters wrote the name of llama.cpp's own template in place of a template. */
export const rwkvWorld: Repair = {
  family: "RWKV World",
  applies: ({ metadata }) => metadata.get(TEMPLATE) === "rwkv-world",
  apply: ({ metadata }) => void metadata.set(TEMPLATE, WORLD_TURNS),
};
