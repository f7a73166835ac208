/** Mistral Small 3, Ministral 3, Devstral 2. */
import { hasMedia, MEDIA_TENSORS, type Repair } from "./repair.ts";

const KEYS = ["rope.scaling.beta_fast", "rope.scaling.mscale_all_dim", "rope.scaling_beta"];

export const mistral3: Repair = {
  family: "Mistral 3",
  applies: (header) =>
    header.arch === "mistral3" &&
    (hasMedia(header) || KEYS.some((key) => header.has(key)) || header.get("rope.scaling.type") === ""),
  apply(header) {
    header.setPre("tekken");
    header.hide(MEDIA_TENSORS);
    header.move("rope.scaling_beta", "attention.temperature_scale");
    header.delete("rope.scaling.mscale");
    if (header.get("rope.scaling.type") === "") {
      for (const key of ["type", "factor", "beta_fast", "beta_slow", "mscale_all_dim"])
        header.delete(`rope.scaling.${key}`);
    }
    header.move("rope.scaling.beta_fast", "rope.scaling.yarn_beta_fast");
    header.move("rope.scaling.beta_slow", "rope.scaling.yarn_beta_slow");
    header.move("rope.scaling.mscale_all_dim", "rope.scaling.yarn_log_multiplier");
  },
};
