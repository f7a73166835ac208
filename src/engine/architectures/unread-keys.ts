/**
 * Refuses files with attention and RoPE keys that an architecture never read: if their values ask for something that
 * the program does not do, its answers would be silently wrong. The error names the key.
 */
import { AppError } from "../../base/index.ts";
import type { MetadataValue } from "../formats/gguf/gguf.ts";
import type { Keys } from "./hparams.ts";

/** Widths of tensors, whose shapes are checked when they are read. */
const SIZE =
  /^attention\.((key|value)_length(_mla)?(_swa)?|head_count(_kv)?|(q|kv)_lora_rank(_swa)?|recurrent_layers)$/;

/** Keys that llama.cpp only stores. */
const NOTE = new Set(["rope.scaling.finetuned"]);

/** Values that equal the default behaviour. */
const NEUTRAL: Readonly<Record<string, (value: MetadataValue, keys: Keys) => boolean>> = {
  "attention.rope_pattern": (value) => all(value, (each) => each === 1 || each === true),
  "attention.sliding_window_pattern": (_, keys) => isNothing(keys.find("attention.sliding_window")),
  "attention.temperature_length": (_, keys) => isNothing(keys.find("attention.temperature_scale")),
  "attention.value_scale": (value) => value === 1,
  "attention.output_scale": (value) => value === 1,
  "rope.dimension_count_swa": (value, keys) => value === keys.find("rope.dimension_count") || !slides(keys),
  "rope.freq_base_swa": (value, keys) => value === (keys.find("rope.freq_base") ?? FREQ_BASE) || !slides(keys),
  // text has only the first of the four positions
  "rope.dimension_sections": (value) => typeof value === "object" && isNothing(value.slice(1)),
  "rope.scaling.attn_factor": (value) => value === 1,
  "rope.scaling.yarn_attn_factor": (value) => value === 1,
  "rope.scaling.yarn_ext_factor": (value) => value === -1,
};
const FREQ_BASE = 10_000;

const slides = (keys: Keys): boolean => !isNothing(keys.find("attention.sliding_window"));

/** @param bidirectional rows attend to later rows */
export function checkAllRead(keys: Keys, path: string, { bidirectional }: { bidirectional: boolean }): void {
  const unread = keys.unread(["rope.", "attention."]);
  const turns = keys.unread(["rope.dimension_count"]).length === 0 || keys.find("rope.dimension_count") === undefined;
  for (const [key, value] of unread) {
    if (!turns && key.startsWith("rope.")) continue; // a model without RoPE
    if (key === "attention.causal" ? value === !bidirectional : isNeutral(key, value, keys)) continue;
    const got = typeof value === "object" ? "a list" : JSON.stringify(value);
    const why = `'${keys.arch}' does not know it, and without it the answers would be wrong`;
    throw new AppError("unsupported", `${path}: '${keys.arch}.${key}': ${why}; got ${got}`);
  }
}

function isNeutral(key: string, value: MetadataValue, keys: Keys): boolean {
  return NOTE.has(key) || SIZE.test(key) || isNothing(value) || Boolean(NEUTRAL[key]?.(value, keys));
}

/** Zero, false, empty, or a list of these: equivalent to a missing key. */
const isNothing = (value: MetadataValue | undefined): boolean =>
  value === undefined || all(value, (each) => each === 0 || each === false || each === "" || each === 0n);

const all = (value: MetadataValue, holds: (each: unknown) => boolean): boolean =>
  typeof value === "object" ? Array.from(value as ArrayLike<unknown>).every(holds) : holds(value);
