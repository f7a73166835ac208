/**
 * Norms whose readers are products for few rows go into those: each workgroup reads its rows anyway. A norm by itself
 * is one workgroup a row, for which a whole GPU waits.
 */
import type { Dispatch } from "./dispatch.ts";
import { isSame, nameOf, type Fusion, type Value } from "./fusion.ts";
import type { KernelName } from "./sources.ts";

/**
 * Where kernels that norm what they read have their norm, `has_norm` with eps behind it, and what says where more
 * vectors begin.
 */
const NORMED: Partial<Record<KernelName, { norm: number; flag: number; behind?: readonly number[] }>> = {
  linear: { norm: 6, flag: 11 },
  linear_3: { norm: 8, flag: 14, behind: [16, 17, 18] },
  gated_linear: { norm: 7, flag: 12 },
  moe_gated: { norm: 6, flag: 15, behind: [17] },
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
  const [dim, len, , hasResidual] = params;
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
  const places = NORMED[kernel];
  return places !== undefined && isSame(operands[0], h) && params[places.flag] === 0;
}

/** A product that norms its rows as `norm` did. */
function withNorm(product: Dispatch, norm: Dispatch): Dispatch {
  const places = NORMED[product.kernel]!; // `takesNorm` has looked
  const [x, w] = norm.operands;
  const vectors = product.operands[places.norm];
  const weights = w?.kind === "vector" && w.weight ? [w.weight] : [];
  const more = vectors?.kind === "vectors" ? vectors.weights : [];
  let params = product.params.with(places.flag, 1).with(places.flag + 1, norm.params[2]!);
  // Biases and factors lie behind the norm; 0 says that there are none.
  for (const at of places.behind ?? [])
    if (params[at] !== 0) params = params.with(at, Number(params[at]) + Number(norm.params[1]));
  const operands = product.operands.with(0, x!).with(places.norm, { kind: "vectors", weights: [...weights, ...more] });
  return { ...product, operands, params };
}
