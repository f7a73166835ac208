/** Checks layers that reuse an earlier layer's KV cache: that layer must exist and have a matching cache. */
import type { Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { Keys } from "./hparams.ts";

type Kept = Pick<Extract<Step, { op: "attention" }>, "nKvHeads" | "headDim" | "window">;

/**
 * Throws `bad_file` if a layer shares the KV cache of a layer that is not before it, or that has another kind of
 * attention.
 */
export function checkShared(steps: readonly Step[], keys: Keys, path: string): void {
  const kept = new Map<number, Kept>();
  for (const step of steps) {
    if (step.op === "attention") kept.set(step.layer, step);
    if (step.op !== "sharedAttention") continue;
    const source = kept.get(step.source);
    if (source && kindOf(source) === kindOf(step)) continue;
    const shared = `'${keys.arch}.attention.shared_kv_layers' is ${String(keys.find("attention.shared_kv_layers"))}`;
    const expected = `layer ${step.layer} (${kindOf(step)}) to share keys with an earlier layer of the same kind`;
    const got = source ? `layer ${step.source} (${kindOf(source)})` : "none";
    throw new AppError("bad_file", `${path}: ${shared}: expected ${expected}, got ${got}`);
  }
}

const kindOf = ({ nKvHeads, headDim, window }: Kept): string =>
  `${nKvHeads} key heads of ${headDim}, ${window > 0 ? `a window of ${window}` : "no window"}`;
