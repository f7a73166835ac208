/** LFM2, Nemotron 3 and its variant with images and sound. */
import { DRAFT_TENSORS, hasMedia, MEDIA_TENSORS, type Repair } from "./repair.ts";

export const lfm2: Repair = {
  family: "LFM2",
  applies: (header) =>
    header.arch === "lfm2" && header.hasTensor("output_norm.weight") && !header.hasTensor("token_embd_norm.weight"),
  apply(header) {
    header.rename(/^output_norm\./, "token_embd_norm.");
    header.setPre("lfm2");
    header.set("feed_forward_length", header.shape("blk.0.ffn_gate.weight")[1]!);
  },
};

/** Must come before `nemotronHMoe`, whose layers it may have. */
export const nemotronOmni: Repair = {
  family: "Nemotron 3 Omni",
  applies: (header) => header.arch === "nemotron_h_omni",
  apply(header) {
    const experts = header.number("expert_count", 0) > 0 || header.number("expert_used_count", 0) > 0;
    header.arch = experts ? "nemotron_h_moe" : "nemotron_h";
    header.setPre("pixtral");
    header.hide(MEDIA_TENSORS);
  },
};

const LATENT_IN = /^(blk\.\d+\.ffn_latent)_in\./;

export const nemotronHMoe: Repair = {
  family: "Nemotron 3",
  applies: (header) =>
    /^nemotron_h(_moe)?$/.test(header.arch) &&
    (header.hasTensor(LATENT_IN) || header.hasTensor(DRAFT_TENSORS) || hasMedia(header)),
  apply(header) {
    header.setPre("pixtral");
    const latent = [...header.parts.values()].find(({ info }) => LATENT_IN.test(info.name));
    if (latent) header.setDefault("moe_latent_size", latent.info.shape[1]!);
    header.rename(LATENT_IN, "$1_down.");
    header.rename(/^(blk\.\d+\.ffn_latent)_out\./, "$1_up.");
    header.hide(DRAFT_TENSORS);
    header.hide(MEDIA_TENSORS);
  },
};
