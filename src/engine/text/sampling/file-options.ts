/** Recommended sampling options of a GGUF: defaults that a Modelfile and requests override. */
import { AppError } from "../../../base/index.ts";
import type { Metadata } from "../../formats/gguf/gguf.ts";
import { getNumber, getString } from "../../formats/gguf/keys.ts";
import { knownSampler } from "./sampler-order.ts";
import { parseOptions, type Options, type SamplingOptions } from "./options.ts";

/** By key without its prefix. (llama-arch.cpp, LLM_KV_GENERAL_SAMPLING_*) */
const OPTIONS: Readonly<Record<string, keyof SamplingOptions>> = {
  temp: "temperature",
  top_k: "top_k",
  top_p: "top_p",
  min_p: "min_p",
  xtc_probability: "xtc_probability",
  xtc_threshold: "xtc_threshold",
  penalty_last_n: "repeat_last_n",
  penalty_repeat: "repeat_penalty",
  mirostat: "mirostat",
  mirostat_tau: "mirostat_tau",
  mirostat_eta: "mirostat_eta",
};
const PREFIX = "general.sampling.";
const SEQUENCE = `${PREFIX}sequence`;

/** Throws `bad_file` if a number is not finite. Samplers of `sequence` that do not exist here are left out. */
export function fileOptions(metadata: Metadata): Options {
  const given: Partial<Record<keyof SamplingOptions, number>> = {};
  for (const [word, option] of Object.entries(OPTIONS)) {
    const key = PREFIX + word;
    const value = getNumber(metadata, key, undefined);
    if (value === undefined) continue;
    if (!Number.isFinite(value))
      throw new AppError("bad_file", `metadata '${key}': expected a finite number, got ${value}`);
    given[option] = shortest(value);
  }
  const samplers = sequenceOf(metadata).flatMap((name) => knownSampler(name) ?? []);
  return parseOptions(samplers.length > 0 ? { ...given, samplers } : given).options;
}

/** Keys of the file that name samplers which do not exist here. */
export const unusedSamplers = (metadata: Metadata): string[] =>
  sequenceOf(metadata).every((name) => knownSampler(name)) ? [] : [SEQUENCE];

/** Names of samplers in their order. */
const sequenceOf = (metadata: Metadata): string[] =>
  getString(metadata, SEQUENCE, "")
    .split(";")
    .map((name) => name.trim())
    .filter((name) => name !== "");

/** A float32 as its shortest decimal: 0.6, not 0.6000000238418579. */
function shortest(value: number): number {
  const float = Math.fround(value);
  const digits = [6, 7, 8, 9].find((count) => Math.fround(Number(float.toPrecision(count))) === float);
  return digits === undefined ? value : Number(float.toPrecision(digits));
}
