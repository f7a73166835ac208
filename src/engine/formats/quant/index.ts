/**
 * The registry of block types. A new type is one file and one line here. Types of ggml that we cannot read yet are in
 * `UNSUPPORTED`, so that a file which uses them gets a specific error. Ids: `ggml_type`, ggml.h.
 */
import { AppError } from "../../../base/index.ts";
import { bf16 } from "./bf16.ts";
import { f16 } from "./f16.ts";
import { f32 } from "./f32.ts";
import { i32 } from "./i32.ts";
import { iq1_m } from "./iq1_m.ts";
import { iq1_s } from "./iq1_s.ts";
import { iq2_s } from "./iq2_s.ts";
import { iq2_xs } from "./iq2_xs.ts";
import { iq2_xxs } from "./iq2_xxs.ts";
import { iq3_s } from "./iq3_s.ts";
import { iq3_xxs } from "./iq3_xxs.ts";
import { iq4_nl } from "./iq4_nl.ts";
import { iq4_xs } from "./iq4_xs.ts";
import { mxfp4 } from "./mxfp4.ts";
import { nvfp4 } from "./nvfp4.ts";
import { q1_0 } from "./q1_0.ts";
import { q2_0 } from "./q2_0.ts";
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
import { tq1_0 } from "./tq1_0.ts";
import { tq2_0 } from "./tq2_0.ts";

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
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  iq4_nl,
  iq4_xs,
  mxfp4,
  nvfp4,
  tq1_0,
  tq2_0,
  q1_0,
  q2_0,
} as const satisfies Record<string, Quant>;

export type QuantName = keyof typeof quants;

const UNSUPPORTED: Readonly<Record<number, string>> = {
  4: "q4_2", // removed from ggml
  5: "q4_3", // removed from ggml
  9: "q8_1",
  15: "q8_K",
  24: "i8",
  25: "i16",
  27: "i64",
  28: "f64",
  31: "q4_0_4_4", // removed from ggml
  32: "q4_0_4_8", // removed from ggml
  33: "q4_0_8_8", // removed from ggml
};

/** The block type with this `ggml_type` id, if we can read it. */
export function quantOf(ggmlType: number): Quant | undefined {
  for (const quant of Object.values(quants)) if (quant.ggmlType === ggmlType) return quant;
  return undefined;
}

/** An unknown block type in a file: reading such a tensor is an error. */
export function unreadableQuant(ggmlType: number): Quant {
  if (ggmlType === i32.ggmlType) return i32;
  const unreadable = unsupportedQuant(ggmlType);
  return {
    name: UNSUPPORTED[ggmlType] ?? String(ggmlType),
    ggmlType,
    blockLen: 1,
    blockBytes: 0,
    unreadable,
    dequantize: () => {
      throw new AppError("unsupported", unreadable);
    },
  };
}

/** The error for a `ggml_type` id that cannot be read: its name if ggml knows it, and the types that we read. */
export function unsupportedQuant(ggmlType: number): string {
  const name = UNSUPPORTED[ggmlType];
  const what =
    name === undefined ? `block type ${ggmlType} is not known` : `block type ${name} (${ggmlType}) is not supported`;
  return `${what}; supported: ${Object.keys(quants).join(", ")}`;
}
