/** Qwen 3.5, Qwen 3 Next, Qwen 2.5 VL and Qwen 3 VL. */
import { DRAFT_TENSORS, hasMedia, MEDIA_TENSORS, setSections, type Repair } from "./repair.ts";
import type { Draft } from "./draft.ts";

const STEP_BIAS = /\.ssm_dt$/;
const QWEN35_KEYS = ["vision.block_count", "image_token_id", "ssm.v_head_reordered", "rope.mrope_interleaved"];

export const qwen35: Repair = {
  family: "Qwen 3.5",
  applies: (draft) =>
    /^qwen35(moe)?$/.test(draft.arch) &&
    (QWEN35_KEYS.some((key) => draft.has(key)) ||
      draft.hasTensor(STEP_BIAS) ||
      draft.hasTensor(DRAFT_TENSORS) ||
      hasMedia(draft)),
  apply(draft) {
    repairLinearLayers(draft);
    setSections(draft);
    draft.delete("rope.mrope_interleaved");
    draft.hide(MEDIA_TENSORS);
    draft.hide(DRAFT_TENSORS);
  },
};

export const qwen3next: Repair = {
  family: "Qwen 3 Next",
  applies: (draft) => draft.arch === "qwen3next" && draft.hasTensor(STEP_BIAS),
  apply: repairLinearLayers,
};

export const qwen25vl: Repair = {
  family: "Qwen 2.5 VL",
  applies: (draft) => draft.arch === "qwen25vl",
  apply(draft) {
    draft.arch = "qwen2vl";
    setSections(draft);
    draft.hide(MEDIA_TENSORS);
  },
};

export const qwen3vl: Repair = {
  family: "Qwen 3 VL",
  applies: (draft) => /^qwen3vl(moe)?$/.test(draft.arch) && !draft.has("rope.dimension_sections"),
  apply(draft) {
    draft.set("rope.dimension_sections", Int32Array.of(24, 20, 20, 0));
    draft.set("n_deepstack_layers", draft.numbers("vision.deepstack_visual_indexes")?.length ?? 0);
    draft.delete("rope.mrope_interleaved");
    draft.hide(MEDIA_TENSORS);
  },
};

/** KV heads are given for each layer, none for the linear ones; the bias of the step lacks its suffix. */
function repairLinearLayers(draft: Draft): void {
  const kvHeads = draft.numbers("attention.head_count_kv");
  if (kvHeads) draft.set("attention.head_count_kv", Math.max(...kvHeads) || 2);
  draft.rename(STEP_BIAS, ".ssm_dt.bias");
}
