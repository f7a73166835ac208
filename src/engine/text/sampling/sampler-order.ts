/** The order of samplers, as llama.cpp's `samplers` gives it: names, or one letter for each (`common/sampling.cpp`). */
import { AppError, shown } from "../../../base/index.ts";

export type SamplerName =
  "penalties" | "dry" | "top_n_sigma" | "top_k" | "tfs_z" | "typ_p" | "top_p" | "min_p" | "xtc" | "temperature";

/** llama.cpp's default chain, with tail-free sampling at its position in llama.cpp's old releases. */
export const DEFAULT_ORDER: readonly SamplerName[] = [
  "penalties",
  "dry",
  "top_n_sigma",
  "top_k",
  "tfs_z",
  "typ_p",
  "top_p",
  "min_p",
  "xtc",
  "temperature",
];

const LETTERS: Readonly<Record<string, SamplerName>> = {
  e: "penalties",
  d: "dry",
  s: "top_n_sigma",
  k: "top_k",
  f: "tfs_z",
  y: "typ_p",
  p: "top_p",
  m: "min_p",
  x: "xtc",
  t: "temperature",
};
const ALIASES: Readonly<Record<string, SamplerName>> = {
  nucleus: "top_p",
  temp: "temperature",
  typ: "typ_p",
  typical: "typ_p",
  typicalp: "typ_p",
  tfs: "tfs_z",
};
const SAMPLERS_MAX = 32;

/** Reads a list of names, or a text of letters. Throws `bad_request`. */
export function parseOrder(given: unknown): readonly SamplerName[] {
  const parts = typeof given === "string" ? [...given] : given;
  if (!Array.isArray(parts)) throw wrong("names of samplers, or a text of their letters", shown(given));
  if (parts.length > SAMPLERS_MAX) throw wrong(`at most ${SAMPLERS_MAX} samplers`, `${parts.length}`);
  return parts.map((part) => {
    const name = typeof given === "string" ? ownValue(LETTERS, part) : knownSampler(part);
    if (name === undefined) throw wrong(`samplers among ${DEFAULT_ORDER.join(", ")}`, shown(part));
    return name;
  });
}

/**
 * Reads a name as llama.cpp spells it: `top_k`, `top-k`, `topk`, or an abbreviation. Undefined: there is no such
 * sampler.
 */
export function knownSampler(given: unknown): SamplerName | undefined {
  if (typeof given !== "string") return undefined;
  const plain = given.toLowerCase().replaceAll(/[-_]/g, "");
  return DEFAULT_ORDER.find((name) => name.replaceAll("_", "") === plain) ?? ownValue(ALIASES, plain);
}

const ownValue = (table: Readonly<Record<string, SamplerName>>, key: string): SamplerName | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined;

const wrong = (expected: string, got: string): AppError =>
  new AppError("bad_request", `option "samplers": expected ${expected}, got ${got}`);
