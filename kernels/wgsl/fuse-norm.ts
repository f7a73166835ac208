/**
 * Norms whose readers are products for few rows go into those: each workgroup reads its rows anyway. A norm by itself
 * is one workgroup a row, for which a whole GPU waits.
 */
import type { Dispatch } from "./dispatch.ts";
import { isSame, nameOf, some, type Fusion, type Value } from "./fusion.ts";
import type { KernelName } from "./sources.ts";

/** Where kernels that norm what they read bind the norm, and the parameters that say where more vectors begin. */
const NORMED: Partial<Record<KernelName, { norm: number; behind?: readonly string[] }>> = {
  linear: { norm: 6 },
  linear_3: { norm: 8, behind: ["hasBias", "hasBias2", "hasBias3"] },
  gated_linear: { norm: 7 },
  moe_gated: { norm: 6, behind: ["hasFactors"] },
  moe_gated_shared: { norm: 6, behind: ["hasFactors"] },
};

export const fuseNorm: Fusion = (list, results) => {
  const out = [...list];
  for (let i = 0; i < out.length;) {
    const readers = readersOf(out, i, results);
    const norm = out[i]!;
    if (readers) for (const at of readers) out[at] = withNorm(out[at]!, norm);
    if (readers) out.splice(i, 1);
    else i++;
  }
  return out;
};

/** Who reads what a norm of whole rows makes, where all of them can do it themselves; undefined where it must stay. */
function readersOf(list: readonly Dispatch[], at: number, results: ReadonlySet<string>): number[] | undefined {
  const { kernel, operands, params } = list[at]!;
  if (kernel !== "rms_norm") return undefined;
  const [x, , , h] = operands as [Value, Value, Value, Value]; // see rms_norm.wgsl
  const { dim, len, hasResidual } = params;
  if (hasResidual !== 0 || dim !== len || isSame(x, h)) return undefined;
  const readers: number[] = [];
  let isSourceThere = true;
  for (let i = at + 1; i < list.length; i++) {
    const uses = list[i]!.operands.filter((operand) => isSame(operand, h)) as Value[];
    if (uses.some(({ access }) => access !== "write")) {
      if (!isSourceThere || uses.length > 1 || !takesNorm(list[i]!, h)) return undefined;
      readers.push(i);
    } else if (uses.length > 0) {
      return readers;
    }
    if (list[i]!.operands.some((operand) => isSame(operand, x) && (operand as Value).access !== "read"))
      isSourceThere = false;
  }
  return results.has(nameOf(h)) ? undefined : readers;
}

function takesNorm({ kernel, operands, params }: Dispatch, h: Value): boolean {
  return NORMED[kernel] !== undefined && isSame(operands[0], h) && params["hasNorm"] === 0;
}

/** A product that norms its rows as `norm` did. */
function withNorm(product: Dispatch, norm: Dispatch): Dispatch {
  const places = NORMED[product.kernel]!; // `takesNorm` has looked
  const [x, w] = norm.operands;
  const vectors = product.operands[places.norm];
  const weights = w?.kind === "vector" && w.weight ? [w.weight] : [];
  const more = vectors?.kind === "vectors" ? vectors.weights : [];
  const { len = 0 } = norm.params;
  // Biases and factors lie behind the norm; 0 says that there are none.
  const behind = (places.behind ?? []).map((name) => {
    const begin = product.params[name]!; // NORMED names parameters of the kernel
    return [name, begin === 0 ? 0 : begin + len];
  });
  const params = { ...product.params, hasNorm: 1, ...some(norm, ["eps"]), ...Object.fromEntries(behind) };
  const operands = product.operands.with(0, x!).with(places.norm, { kind: "vectors", weights: [...weights, ...more] });
  return { ...product, operands, params };
}
