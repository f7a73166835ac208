/** Options of models that answer by filling in masks. */
import { AppError, shown } from "../../../base/index.ts";

/** Ranks the positions of a pass: the best keep their tokens, the others stay masks. */
const DIFFUSION_ALGORITHMS = ["confidence", "entropy", "margin", "random"] as const;
export type DiffusionAlgorithm = (typeof DIFFUSION_ALGORITHMS)[number];

/** Throws `bad_request`. */
export function parseAlgorithm(given: unknown): DiffusionAlgorithm {
  const found = DIFFUSION_ALGORITHMS.find((name) => name === given);
  if (found) return found;
  const known = DIFFUSION_ALGORITHMS.join(", ");
  throw new AppError("bad_request", `option "diffusion_algorithm" must be one of ${known}, got ${shown(given)}`);
}
