/** GLM-OCR and GLM-4.7 Flash. */
import { DRAFT_TENSORS, MEDIA_TENSORS, setSections, type Repair } from "./repair.ts";

export const glmOcr: Repair = {
  family: "GLM-OCR",
  applies: (draft) => draft.arch === "glmocr",
  apply(draft) {
    draft.arch = "glm4";
    // the converter mistook the tokenizer for Llama 3's
    draft.metadata.set("tokenizer.ggml.pre", "chatglm-bpe");
    setSections(draft);
    draft.setDefault("rope.dimension_count", draft.number("attention.key_length"));
    draft.delete("rope.partial_rotary_factor");
    draft.rename(/\.attn_out\./, ".attn_output.");
    draft.rename(/\.post_attn_norm\./, ".post_attention_norm.");
    draft.rename(/\.post_ffn_norm\./, ".post_ffw_norm.");
    draft.hide(MEDIA_TENSORS);
  },
};

/** Its keys swap the head sizes and the sizes of the compressed cache. */
export const glm4MoeLite: Repair = {
  family: "GLM-4.7 Flash",
  applies: (draft) => draft.arch === "glm4moelite",
  apply(draft) {
    draft.arch = "deepseek2";
    draft.setPre("glm4");
    const rank = draft.number("attention.kv_lora_rank");
    const headDim = draft.number("attention.key_length");
    draft.set("attention.head_count_kv", 1);
    draft.set("attention.key_length_mla", headDim);
    draft.set("attention.value_length_mla", headDim);
    draft.set("attention.key_length", rank + draft.number("rope.dimension_count"));
    draft.set("attention.value_length", rank);
    draft.setDefault("expert_group_count", 1);
    draft.setDefault("expert_group_used_count", 1);
    const ends = draft.list("tokenizer.ggml.eos_token_ids");
    for (const [i, key] of ["eot_token_id", "eom_token_id"].entries()) {
      const id = ends?.[i + 1];
      if (id !== undefined) draft.metadata.set(`tokenizer.ggml.${key}`, id);
    }
    draft.hide(DRAFT_TENSORS);
  },
};
