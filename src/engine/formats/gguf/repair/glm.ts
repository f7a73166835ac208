/** GLM-OCR and GLM-4.7 Flash. */
import { DRAFT_TENSORS, MEDIA_TENSORS, setSections, type Repair } from "./repair.ts";

export const glmOcr: Repair = {
  family: "GLM-OCR",
  applies: (header) => header.arch === "glmocr",
  apply(header) {
    header.arch = "glm4";
    // the converter mistook the tokenizer for Llama 3's
    header.metadata.set("tokenizer.ggml.pre", "chatglm-bpe");
    setSections(header);
    header.setDefault("rope.dimension_count", header.number("attention.key_length"));
    header.delete("rope.partial_rotary_factor");
    header.rename(/\.attn_out\./, ".attn_output.");
    header.rename(/\.post_attn_norm\./, ".post_attention_norm.");
    header.rename(/\.post_ffn_norm\./, ".post_ffw_norm.");
    header.hide(MEDIA_TENSORS);
  },
};

/** Its keys swap the head sizes and the sizes of the compressed cache. */
export const glm4MoeLite: Repair = {
  family: "GLM-4.7 Flash",
  applies: (header) => header.arch === "glm4moelite",
  apply(header) {
    header.arch = "deepseek2";
    header.setPre("glm4");
    const rank = header.number("attention.kv_lora_rank");
    const headDim = header.number("attention.key_length");
    header.set("attention.head_count_kv", 1);
    header.set("attention.key_length_mla", headDim);
    header.set("attention.value_length_mla", headDim);
    header.set("attention.key_length", rank + header.number("rope.dimension_count"));
    header.set("attention.value_length", rank);
    header.setDefault("expert_group_count", 1);
    header.setDefault("expert_group_used_count", 1);
    const ends = header.list("tokenizer.ggml.eos_token_ids");
    for (const [i, key] of ["eot_token_id", "eom_token_id"].entries()) {
      const id = ends?.[i + 1];
      if (id !== undefined) header.metadata.set(`tokenizer.ggml.${key}`, id);
    }
    header.hide(DRAFT_TENSORS);
  },
};
