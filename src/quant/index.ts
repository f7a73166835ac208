/**
 * The registry of block types. A new type is one file and one line here. Types that ggml knows and we cannot read yet
 * are named in `UNSUPPORTED`, so that a file which uses them gets an error in its own words. Ids: `ggml_type`, ggml.h.
 */
import { bf16 } from "./bf16.ts";
import { f16 } from "./f16.ts";
import { f32 } from "./f32.ts";
import { iq4_nl } from "./iq4_nl.ts";
import { iq4_xs } from "./iq4_xs.ts";
import { mxfp4 } from "./mxfp4.ts";
import { q2_K } from "./q2_k.ts";
import { q3_K } from "./q3_k.ts";
import { q4_0 } from "./q4_0.ts";
import { q4_1 } from "./q4_1.ts";
import { q4_K } from "./q4_k.ts";
import { q5_0 } from "./q5_0.ts";
import { q5_1 } from "./q5_1.ts";
import { q5_K } from "./q5_k.ts";
import { q6_K } from "./q6_k.ts";
import { q8_0 } from "./q8_0.ts";
import type { Quant } from "./quant.ts";

export const quants = {
  f32,
  f16,
  bf16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_K,
  q3_K,
  q4_K,
  q5_K,
  q6_K,
  iq4_nl,
  iq4_xs,
  mxfp4,
} as const satisfies Record<string, Quant>;

export type QuantName = keyof typeof quants;

const UNSUPPORTED: Readonly<Record<number, string>> = {
  4: "q4_2", // removed from ggml
  5: "q4_3", // removed from ggml
  9: "q8_1",
  15: "q8_K",
  16: "iq2_xxs",
  17: "iq2_xs",
  18: "iq3_xxs",
  19: "iq1_s",
  21: "iq3_s",
  22: "iq2_s",
  24: "i8",
  25: "i16",
  26: "i32",
  27: "i64",
  28: "f64",
  29: "iq1_m",
  31: "q4_0_4_4", // removed from ggml
  32: "q4_0_4_8", // removed from ggml
  33: "q4_0_8_8", // removed from ggml
  34: "tq1_0",
  35: "tq2_0",
  40: "nvfp4",
  41: "q1_0",
  42: "q2_0",
};

/** The block type with this `ggml_type` id, where we can read it. */
export function quantOf(ggmlType: number): Quant | undefined {
  for (const quant of Object.values(quants)) if (quant.ggmlType === ggmlType) return quant;
  return undefined;
}

/** Why a `ggml_type` id cannot be read: its name where ggml knows it, and what we read instead. */
export function unsupportedQuant(ggmlType: number): string {
  const name = UNSUPPORTED[ggmlType];
  const what =
    name === undefined ? `block type ${ggmlType} is not known` : `block type ${name} (${ggmlType}) is not supported`;
  return `${what}; supported: ${Object.keys(quants).join(", ")}`;
}
