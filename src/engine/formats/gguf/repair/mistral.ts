/** Mistral Small 3, Ministral 3, Devstral 2. */
import { hasMedia, MEDIA_TENSORS, type Repair } from "./repair.ts";

const KEYS = ["rope.scaling.beta_fast", "rope.scaling.mscale_all_dim", "rope.scaling_beta"];

export const mistral3: Repair = {
  family: "Mistral 3",
  applies: (draft) =>
    draft.arch === "mistral3" &&
    (hasMedia(draft) || KEYS.some((key) => draft.has(key)) || draft.get("rope.scaling.type") === ""),
  apply(draft) {
    draft.setPre("tekken");
    draft.hide(MEDIA_TENSORS);
    draft.move("rope.scaling_beta", "attention.temperature_scale");
    draft.delete("rope.scaling.mscale");
    if (draft.get("rope.scaling.type") === "") {
      for (const key of ["type", "factor", "beta_fast", "beta_slow", "mscale_all_dim"])
        draft.delete(`rope.scaling.${key}`);
    }
    draft.move("rope.scaling.beta_fast", "rope.scaling.yarn_beta_fast");
    draft.move("rope.scaling.beta_slow", "rope.scaling.yarn_beta_slow");
    draft.move("rope.scaling.mscale_all_dim", "rope.scaling.yarn_log_multiplier");
  },
};
