/** Steps → steps: gives every factor of products its `NAME.scale`, which NVFP4 files have beside `NAME.weight`. */
import { AppError } from "../../base/index.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { weightsOf, withWeights, type WeightRole } from "../program/describe.ts";
import type { Step } from "../program/step.ts";
import { checkShape, copyOf } from "./tensors.ts";

/** The roles in which backends apply `Weight.scale`. */
const SCALED: ReadonlySet<WeightRole> = new Set(["matrix", "experts", "embedding"]);

/**
 * A tensor of factors has one for each stacked matrix, or one for all. They belong to the weights, not to a bias:
 * llama.cpp multiplies by them in some architectures only, and after adding the bias of an MLP (build_ffn), which it
 * calls incorrect for NVFP4. Throws `unsupported` for factors of another weight, unless the steps read them by name.
 */
export function withFactors(gguf: Gguf, steps: readonly Step[]): Step[] {
  const read = new Set(steps.flatMap((step) => weightsOf(step).map(({ name }) => name)));
  return steps.map((step) =>
    withWeights(step, (weight, role) => {
      const { name, experts } = weight;
      const info = gguf.tensors.get(name.replace(/\.weight$/, ".scale"));
      if (!info || read.has(info.name)) return weight;
      if (!SCALED.has(role)) {
        const why = `expected none, for '${name}' is not a matrix`;
        throw new AppError("unsupported", `${gguf.path}: tensor '${info.name}': ${why}`);
      }
      checkShape(gguf.path, info, [info.shape[0] === 1 ? 1 : experts]);
      const factors = copyOf(gguf, info);
      return { ...weight, scale: factors.length === experts ? factors : new Float32Array(experts).fill(factors[0]!) };
    }),
  );
}
