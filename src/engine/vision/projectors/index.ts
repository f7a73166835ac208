/** The registry of projectors, by `clip.projector_type`. */
import { AppError } from "../../../base/index.ts";
import type { ClipModel } from "../clip.ts";
import type { Projector } from "../projector.ts";
import { gemma3 } from "./gemma3.ts";
import { gemma4uv, gemma4v } from "./gemma4.ts";
import { glm4v } from "./glm4v.ts";
import { idefics3 } from "./idefics3.ts";
import { mllama } from "./mllama.ts";
import { mlp } from "./mlp.ts";
import { pixtral } from "./pixtral.ts";
import { qwen25vl, qwen2vl, qwen3vl } from "./qwen.ts";
import { resampler } from "./resampler.ts";

const projectors: Readonly<Record<string, (model: ClipModel) => Projector>> = {
  gemma3,
  gemma4uv,
  gemma4v,
  glm4v,
  idefics3,
  mllama,
  mlp,
  pixtral,
  "qwen2.5vl_merger": qwen25vl,
  qwen2vl_merger: qwen2vl,
  qwen3vl_merger: qwen3vl,
  resampler,
};

/** Returns whether the projector kind is known. */
export const hasProjector = (kind: string): boolean => Object.hasOwn(projectors, kind);

/** A projector with checked hyperparameters and weight shapes. Throws `unsupported` for an unknown kind. */
export function projectorOf(model: ClipModel): Projector {
  const make = Object.entries(projectors).find(([kind]) => kind === model.kind)?.[1];
  if (!make) {
    const known = Object.keys(projectors).join(", ");
    const got = model.kind === "" ? "none" : `'${model.kind.slice(0, 40)}'`;
    throw new AppError("unsupported", `${model.path}: 'clip.projector_type': expected one of ${known}, got ${got}`);
  }
  const projector = make(model);
  model.checkAllUsed(model.kind, { draftsFrom: Infinity });
  return projector;
}
