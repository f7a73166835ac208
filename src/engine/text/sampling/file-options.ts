/** Recommended sampling options of a GGUF: defaults that a Modelfile and requests override. */
import { AppError } from "../../../base/index.ts";
import type { Metadata } from "../../formats/gguf/gguf.ts";
import { getNumber } from "../../formats/gguf/keys.ts";
import { parseOptions, type Options, type SamplingOptions } from "./options.ts";

/** By key without its prefix. (llama-arch.cpp, LLM_KV_GENERAL_SAMPLING_*) */
const OPTIONS: Readonly<Record<string, keyof SamplingOptions>> = {
  temp: "temperature",
  top_k: "top_k",
  top_p: "top_p",
  min_p: "min_p",
  penalty_last_n: "repeat_last_n",
  penalty_repeat: "repeat_penalty",
  mirostat: "mirostat",
  mirostat_tau: "mirostat_tau",
  mirostat_eta: "mirostat_eta",
};
const PREFIX = "general.sampling.";

/** Throws `bad_file` if a value is not a finite number. */
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
  return parseOptions(given).options;
}

/** Keys of unsupported samplers, with values that would change answers. */
export function unusedSamplers(metadata: Metadata): string[] {
  const xtc = metadata.get(`${PREFIX}xtc_probability`);
  const keys = [
    typeof xtc === "number" && xtc > 0 ? "xtc_probability" : [],
    metadata.has(`${PREFIX}sequence`) ? "sequence" : [],
  ];
  return keys.flat().map((word) => PREFIX + word);
}

/** A float32 as its shortest decimal: 0.6, not 0.6000000238418579. */
function shortest(value: number): number {
  const float = Math.fround(value);
  const digits = [6, 7, 8, 9].find((count) => Math.fround(Number(float.toPrecision(count))) === float);
  return digits === undefined ? value : Number(float.toPrecision(digits));
}
