/** Qwen 3.5, Qwen 3 Next, Qwen 2.5 VL and Qwen 3 VL. */
import { DRAFT_TENSORS, hasMedia, MEDIA_TENSORS, setSections, type Repair } from "./repair.ts";
import type { EditableHeader } from "./editable-header.ts";

const STEP_BIAS = /\.ssm_dt$/;
const QWEN35_KEYS = ["vision.block_count", "image_token_id", "ssm.v_head_reordered", "rope.mrope_interleaved"];

export const qwen35: Repair = {
  family: "Qwen 3.5",
  applies: (header) =>
    /^qwen35(moe)?$/.test(header.arch) &&
    (QWEN35_KEYS.some((key) => header.has(key)) ||
      header.hasTensor(STEP_BIAS) ||
      header.hasTensor(DRAFT_TENSORS) ||
      hasMedia(header)),
  apply(header) {
    repairLinearLayers(header);
    setSections(header);
    header.delete("rope.mrope_interleaved");
    header.hide(MEDIA_TENSORS);
    header.hide(DRAFT_TENSORS);
  },
  moveDraftLayer,
};

export const qwen3next: Repair = {
  family: "Qwen 3 Next",
  applies: (header) => header.arch === "qwen3next" && header.hasTensor(STEP_BIAS),
  apply: repairLinearLayers,
};

export const qwen25vl: Repair = {
  family: "Qwen 2.5 VL",
  applies: (header) => header.arch === "qwen25vl",
  apply(header) {
    header.arch = "qwen2vl";
    setSections(header);
    header.hide(MEDIA_TENSORS);
  },
};

export const qwen3vl: Repair = {
  family: "Qwen 3 VL",
  applies: (header) => /^qwen3vl(moe)?$/.test(header.arch) && !header.has("rope.dimension_sections"),
  apply(header) {
    header.set("rope.dimension_sections", Int32Array.of(24, 20, 20, 0));
    header.set("n_deepstack_layers", header.numbers("vision.deepstack_visual_indexes")?.length ?? 0);
    header.delete("rope.mrope_interleaved");
    header.hide(MEDIA_TENSORS);
  },
};

/** KV heads are given per layer, 0 for linear layers; the bias of the time step lacks its suffix. */
function repairLinearLayers(header: EditableHeader): void {
  const kvHeads = header.numbers("attention.head_count_kv");
  if (kvHeads) header.set("attention.head_count_kv", kvHeads.reduce((most, heads) => Math.max(most, heads), 0) || 2);
  header.rename(STEP_BIAS, ".ssm_dt.bias");
}

/** Norms of the draft layer, which files store minus 1. */
const DRAFT_NORMS: Readonly<Record<string, string>> = {
  "mtp.norm": "shared_head_norm",
  "mtp.pre_fc_norm_embedding": "enorm",
  "mtp.pre_fc_norm_hidden": "hnorm",
};

/** Moves the draft layer if the file has all of its parts. */
function moveDraftLayer(header: EditableHeader): void {
  const parts = ["mtp.fc", ...Object.keys(DRAFT_NORMS)].map((name) => `${name}.weight`);
  if (!parts.every((name) => header.hasTensor(name)) || header.hasTensor(/^mtp\.layers\.[1-9]/)) return;
  if (header.number("nextn_predict_layers", 0) > 0) return;
  const layers = header.number("block_count");
  const block = `blk.${layers}`;
  for (const [name, own] of Object.entries(DRAFT_NORMS)) {
    header.raise(`${name}.weight`, 1);
    header.rename(new RegExp(`^${RegExp.escape(name)}\\.`), `${block}.nextn.${own}.`);
  }
  header.rename(/^mtp\.fc\./, `${block}.nextn.eh_proj.`);
  header.rename(/^mtp\.layers\.0\./, `${block}.`);
  header.set("block_count", layers + 1);
  header.set("nextn_predict_layers", 1);
}
