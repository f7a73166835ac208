/** LFM2, Nemotron 3 and its variant with images and sound. */
import { DRAFT_TENSORS, hasMedia, MEDIA_TENSORS, type Repair } from "./repair.ts";

export const lfm2: Repair = {
  family: "LFM2",
  applies: (draft) =>
    draft.arch === "lfm2" && draft.hasTensor("output_norm.weight") && !draft.hasTensor("token_embd_norm.weight"),
  apply(draft) {
    draft.rename(/^output_norm\./, "token_embd_norm.");
    draft.setPre("lfm2");
    draft.set("feed_forward_length", draft.shape("blk.0.ffn_gate.weight")[1]!);
  },
};

/** Must come before `nemotronHMoe`, whose layers it may have. */
export const nemotronOmni: Repair = {
  family: "Nemotron 3 Omni",
  applies: (draft) => draft.arch === "nemotron_h_omni",
  apply(draft) {
    const experts = draft.number("expert_count", 0) > 0 || draft.number("expert_used_count", 0) > 0;
    draft.arch = experts ? "nemotron_h_moe" : "nemotron_h";
    draft.setPre("pixtral");
    draft.hide(MEDIA_TENSORS);
  },
};

const LATENT_IN = /^(blk\.\d+\.ffn_latent)_in\./;

export const nemotronHMoe: Repair = {
  family: "Nemotron 3",
  applies: (draft) =>
    /^nemotron_h(_moe)?$/.test(draft.arch) &&
    (draft.hasTensor(LATENT_IN) || draft.hasTensor(DRAFT_TENSORS) || hasMedia(draft)),
  apply(draft) {
    draft.setPre("pixtral");
    const latent = [...draft.parts.values()].find(({ info }) => LATENT_IN.test(info.name));
    if (latent) draft.setDefault("moe_latent_size", latent.info.shape[1]!);
    draft.rename(LATENT_IN, "$1_down.");
    draft.rename(/^(blk\.\d+\.ffn_latent)_out\./, "$1_up.");
    draft.hide(DRAFT_TENSORS);
    draft.hide(MEDIA_TENSORS);
  },
};
