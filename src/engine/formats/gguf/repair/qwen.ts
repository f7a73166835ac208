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
  moveDraftLayer,
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

/** KV heads are given per layer, 0 for linear layers; the bias of the time step lacks its suffix. */
function repairLinearLayers(draft: Draft): void {
  const kvHeads = draft.numbers("attention.head_count_kv");
  if (kvHeads) draft.set("attention.head_count_kv", kvHeads.reduce((most, heads) => Math.max(most, heads), 0) || 2);
  draft.rename(STEP_BIAS, ".ssm_dt.bias");
}

/** The draft layer's own norms, stored minus 1. */
const DRAFT_NORMS: Readonly<Record<string, string>> = {
  "mtp.norm": "shared_head_norm",
  "mtp.pre_fc_norm_embedding": "enorm",
  "mtp.pre_fc_norm_hidden": "hnorm",
};

/** If there is a draft layer with all its own parts. */
function moveDraftLayer(draft: Draft): void {
  const parts = ["mtp.fc", ...Object.keys(DRAFT_NORMS)].map((name) => `${name}.weight`);
  if (!parts.every((name) => draft.hasTensor(name)) || draft.hasTensor(/^mtp\.layers\.[1-9]/)) return;
  if (draft.number("nextn_predict_layers", 0) > 0) return;
  const layers = draft.number("block_count");
  const block = `blk.${layers}`;
  for (const [name, own] of Object.entries(DRAFT_NORMS)) {
    draft.raise(`${name}.weight`, 1);
    draft.rename(new RegExp(`^${RegExp.escape(name)}\\.`), `${block}.nextn.${own}.`);
  }
  draft.rename(/^mtp\.fc\./, `${block}.nextn.eh_proj.`);
  draft.rename(/^mtp\.layers\.0\./, `${block}.`);
  draft.set("block_count", layers + 1);
  draft.set("nextn_predict_layers", 1);
}
