/** The part of llama.cpp's answers on real weights that test/real/recorded/ keeps. */
import { join } from "node:path";

export const RECORDED = join(import.meta.dir, "../../test/real/recorded");

export const LOGITS = {
  /** Texts whose ids are compared. */
  texts: 5000,
  /** Prompts, by their numbers. */
  prompts: [0, 2, 6, 9, 12, 16, 17, 23, 28, 31, 38, 41],
  /** Maximum tokens of each text. */
  length: 32,
  /** Every n-th position is kept. */
  every: 4,
  /** Number of likeliest tokens kept per position. */
  top: 12,
  /** Maximum tokens of an answer. */
  answer: 24,
} as const;

export const LOSSES = { text: "/usr/share/common-licenses/GPL-3", length: 1400 } as const;

export interface RecordedRow {
  readonly prompt: number;
  /** The position, from 0. */
  readonly at: number;
  /** The likeliest tokens, that first. */
  readonly ids: readonly number[];
  /** ln p of each. */
  readonly logs: readonly number[];
}
