/**
 * Dispatch[] → Dispatch[]: replaces neighbours that one kernel can do at once. Each function here is one such fusion;
 * other dispatches stay unchanged. A decode step of a plain llama then takes five dispatches per layer, and one more if
 * a long context is split.
 */
import type { Dispatch } from "./dispatch.ts";
import { NONE } from "./lowering.ts";
import { fuseSharedExpert } from "./fuse-moe.ts";
import { fuseNorm } from "./fuse-norm.ts";
import { fuseRopeAttention, fuseRopeStore } from "./fuse-rope.ts";
import { isRead, isSameBuffer, nameOf, renamed, replaceRuns, some, type Fusion, type Value } from "./fusion.ts";
import type { KernelName } from "./sources.ts";

/**
 * All fusions, in order.
 * @param results buffers that are read after the dispatches
 * @param buffersMax storage buffers that a kernel can bind: fusions that need more are left out
 */
export function fuse(
  dispatches: readonly Dispatch[],
  results: readonly string[],
  buffersMax: number = Infinity,
): Dispatch[] {
  const all = [
    dropRepeats,
    fuseResidual,
    fuseGated,
    fuseRopeStore,
    fuseRopeAttention,
    fuseThree,
    fuseSharedExpert,
    fuseNorm,
  ];
  return all.reduce<Dispatch[]>(
    (list, fusion) => {
      const before = new Set(list);
      const fused = fusion(list, new Set(results));
      return fused.every((each) => before.has(each) || each.operands.length <= buffersMax) ? fused : list;
    },
    [...dispatches],
  );
}

/** The halves of a value are made once for all of its products. */
const dropRepeats: Fusion = (list) => {
  const made = new Map<string, string>(); // the buffer of a value, by the buffer of its halves
  return list.filter(({ kernel, operands }) => {
    const activations = operands.filter((operand) => operand.kind === "activation");
    const [x, halves] = activations; // see to_halves.wgsl
    const isMade = kernel === "to_halves" && made.has(nameOf(halves!));
    const changed = activations.filter(({ access }) => access !== "read").map(nameOf);
    if (!isMade) for (const [name, from] of made) if (changed.includes(from)) made.delete(name);
    if (kernel === "to_halves") made.set(nameOf(halves!), nameOf(x!));
    return !isMade;
  });
};

/** Kernels that can add their result to a value: the bindings of that and of the sum, and the flag. */
const SUMS: Partial<Record<KernelName, { residual: number; out: number; flag: string }>> = {
  linear: { residual: 3, out: 4, flag: "hasResidual" },
  matmul: { residual: 3, out: 4, flag: "hasResidual" },
  moe_down: { residual: 3, out: 4, flag: "base" },
  rms_norm: { residual: 2, out: 3, flag: "hasResidual" },
};

/** y = f(x), then z = a + y · s, if y has no other reader. */
const fuseResidual: Fusion = (list, results) =>
  replaceRuns(list, 2, ([made, add], rest) => {
    const bindings = made && SUMS[made.kernel];
    if (!bindings || add?.kernel !== "add") return undefined;
    const y = made.operands[bindings.out];
    const [left, right, z] = add.operands as [Value, Value, Value]; // see add.wgsl
    if (y?.kind !== "activation" || y.access !== "write" || made.params[bindings.flag] !== 0) return undefined;
    if (isMatrix(made) && !isPlain(made)) return undefined;
    const name = y.value.buf.name;
    const { scale = NaN } = add.params; // see add.wgsl
    const isLeft = left.value.buf.name === name;
    if (isLeft === (right.value.buf.name === name) || (isLeft && scale !== 1)) return undefined;
    if (z.value.buf.name !== name && isRead(name, rest, results)) return undefined;
    const params = { ...made.params, [bindings.flag]: 1, scale };
    const operands = made.operands.with(bindings.residual, isLeft ? right : left).with(bindings.out, z);
    return { ...made, operands, params, step: add.step };
  });

/** up = act(gate · x) ⊙ (up · x), for few rows. */
const fuseGated: Fusion = (list, results) =>
  replaceRuns(list, 3, ([gate, up, join], rest) => {
    if (gate?.kernel !== "linear" || up?.kernel !== "linear" || join?.kernel !== "gate") return undefined;
    const [x, w, b, , gated, batch] = gate.operands;
    const [x2, w2, b2, , y] = up.operands;
    const [read, updated] = join.operands;
    if (
      !isPlain(gate) ||
      !isPlain(up) ||
      !isSameBuffer(x, x2) ||
      !isSameBuffer(read, gated) ||
      !isSameBuffer(updated, y)
    )
      return undefined;
    if (isRead((gated as Value).value.buf.name, rest, results)) return undefined;
    const own = some(gate, ["inDim", "count", "first", "rowBytes", "hasBias", "factor", "wanted"]);
    const others = renamed(up, { firstUp: "first", rowBytesUp: "rowBytes", hasBiasUp: "hasBias", factorUp: "factor" });
    return {
      ...join,
      kernel: "gated_linear",
      quants: [...(gate.quants ?? []), ...(up.quants ?? [])],
      operands: [x!, w!, w2!, b!, b2!, y!, batch!, NONE],
      params: { ...own, ...others, ...some(join, ["kind", "gateLimit", "upLimit"]), hasNorm: 0, eps: 0 },
      grid: up.grid,
    };
  });

/** Three products of the same rows, for few rows. */
const fuseThree: Fusion = (list) =>
  replaceRuns(list, 3, (three) => {
    const [first] = three;
    if (!first || !three.every((each) => each.kernel === "linear" && isPlain(each))) return undefined;
    if (!three.every(({ operands }) => isSameBuffer(operands[0], first.operands[0]))) return undefined;
    const outs = three.map(({ operands }) => operands[4] as Value); // a product's, see linear.wgsl
    if (outs.some((out) => isSameBuffer(out, first.operands[0])) || new Set(outs.map(nameOf)).size < 3)
      return undefined;
    const biases = three.flatMap(({ operands: [, , b] }) => (b?.kind === "vector" && b.weight ? [b.weight] : []));
    let end = 1; // the index after the last bias so far
    const begins = three.map(({ params: { hasBias, count = 0 } }) => (hasBias === 0 ? 0 : (end += count) - count));
    const shapes = three.map((product, i) => {
      const behind = i === 0 ? "" : String(i + 1);
      const names = ["count", "first", "rowBytes", "factor"].map((name) => [`${name}${behind}`, name]);
      return { ...renamed(product, Object.fromEntries(names)), [`hasBias${behind}`]: begins[i]! };
    });
    return {
      kernel: "linear_3",
      quants: three.flatMap(({ quants }) => quants ?? []),
      operands: [
        first.operands[0]!,
        ...three.map(({ operands }) => operands[1]!),
        ...outs,
        first.operands[5]!,
        { kind: "vectors", weights: biases },
      ],
      params: { ...some(first, ["inDim", "wanted"]), ...Object.assign({}, ...shapes), hasNorm: 0, eps: 0 },
      grid: { ...first.grid, x: three.reduce((sum, { grid }) => sum + grid.x, 0) },
      step: three[2]!.step, // `replaceRuns` passes that many
    };
  });

const isMatrix = ({ kernel }: Dispatch): boolean => kernel === "linear" || kernel === "matmul";

/** A product of a whole matrix, without additions so far. */
function isPlain({ operands, params }: Dispatch): boolean {
  const out = operands[4];
  if (out?.kind !== "activation" || out.access !== "write") return false;
  return params["count"] === out.value.buf.dim && params["hasResidual"] === 0;
}
