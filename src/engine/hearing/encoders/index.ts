/** The registry of audio encoders, by `clip.audio.projector_type`. */
import { AppError } from "../../../base/index.ts";
import type { EncoderModel } from "../../vision/clip.ts";
import type { AudioEncoderSpec } from "../encoder-spec.ts";
import { gemma4a } from "./gemma4a.ts";
import { gemma4ua } from "./gemma4ua.ts";
import { qwen3a } from "./qwen3a.ts";
import { qwen2a, ultravox, voxtral, whisper } from "./whisper.ts";

const encoderSpecs: Readonly<Record<string, (model: EncoderModel) => AudioEncoderSpec>> = {
  gemma4a,
  gemma4ua,
  qwen2a,
  qwen3a,
  ultravox,
  voxtral,
  whisper,
};

/** Returns whether the kind of audio encoder is known. */
export const hasAudioEncoder = (kind: string): boolean => Object.hasOwn(encoderSpecs, kind);

/** An audio encoder with checked hyperparameters and weight shapes. Throws `unsupported` for an unknown kind. */
export function encoderSpecOf(model: EncoderModel): AudioEncoderSpec {
  const make = Object.entries(encoderSpecs).find(([kind]) => kind === model.kind)?.[1];
  if (!make) {
    const known = Object.keys(encoderSpecs).join(", ");
    const got = model.kind === "" ? "none" : `'${model.kind.slice(0, 40)}'`;
    const key = "'clip.audio.projector_type'";
    throw new AppError("unsupported", `${model.path}: ${key}: expected one of ${known}, got ${got}`);
  }
  const spec = make(model);
  model.checkAllUsed(model.kind, { draftsFrom: Infinity });
  return spec;
}
