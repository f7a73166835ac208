/**
 * Fuses norms into products for few rows: each workgroup reads its rows anyway. A separate norm is one workgroup per
 * row, for which a whole GPU waits.
 */
import type { Dispatch } from "./dispatch.ts";
import { isSameBuffer, nameOf, some, type Fusion, type Value } from "./fusion.ts";
import type { KernelName } from "./sources.ts";

/**
 * Kernels that can norm their input: the binding of the norm, and the parameters with the offsets of further vectors.
 */
const NORMED: Partial<Record<KernelName, { norm: number; behind?: readonly string[] }>> = {
  linear: { norm: 6 },
  linear_3: { norm: 8, behind: ["hasBias", "hasBias2", "hasBias3"] },
  gated_linear: { norm: 7 },
  moe_gated: { norm: 6, behind: ["hasFactors", "hasBias"] },
  moe_gated_shared: { norm: 6, behind: ["hasFactors", "hasBias"] },
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

/** The readers of a norm of whole rows, if all of them can norm their input; undefined if the norm must stay. */
function readersOf(list: readonly Dispatch[], at: number, results: ReadonlySet<string>): number[] | undefined {
  const { kernel, operands, params } = list[at]!;
  if (kernel !== "rms_norm") return undefined;
  const [x, , , h] = operands as [Value, Value, Value, Value]; // see rms_norm.wgsl
  const { dim, len, weights, hasResidual } = params;
  if (weights !== 1 || hasResidual !== 0 || dim !== len || isSameBuffer(x, h)) return undefined;
  const readers: number[] = [];
  let isSourceThere = true;
  for (let i = at + 1; i < list.length; i++) {
    const uses = list[i]!.operands.filter((operand) => isSameBuffer(operand, h)) as Value[];
    if (uses.some(({ access }) => access !== "write")) {
      if (!isSourceThere || uses.length > 1 || !takesNorm(list[i]!, h)) return undefined;
      readers.push(i);
    } else if (uses.length > 0) {
      return readers;
    }
    if (list[i]!.operands.some((operand) => isSameBuffer(operand, x) && (operand as Value).access !== "read"))
      isSourceThere = false;
  }
  return results.has(nameOf(h)) ? undefined : readers;
}

function takesNorm({ kernel, operands, params }: Dispatch, h: Value): boolean {
  return NORMED[kernel] !== undefined && isSameBuffer(operands[0], h) && params["hasNorm"] === 0;
}

/** A product that norms its rows like `norm`. */
function withNorm(product: Dispatch, norm: Dispatch): Dispatch {
  const bindings = NORMED[product.kernel]!; // `takesNorm` has checked
  const [x, w] = norm.operands;
  const vectors = product.operands[bindings.norm];
  const weights = w?.kind === "vector" && w.weight ? [w.weight] : [];
  const more = vectors?.kind === "vectors" ? vectors.weights : [];
  const { len = 0 } = norm.params;
  // Biases and factors follow the norm; 0 means absent.
  const behind = (bindings.behind ?? []).map((name) => {
    const begin = product.params[name]!; // a parameter of the kernel, by NORMED
    return [name, begin === 0 ? 0 : begin + len];
  });
  const params = { ...product.params, hasNorm: 1, ...some(norm, ["eps"]), ...Object.fromEntries(behind) };
  const operands = product.operands
    .with(0, x!)
    .with(bindings.norm, { kind: "vectors", weights: [...weights, ...more] });
  return { ...product, operands, params };
}
