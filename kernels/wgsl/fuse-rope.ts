/** Fuses the work on queries and keys between their matrices and attention into one dispatch. */
import type { Dispatch, Operand, Params } from "./dispatch.ts";
import { NONE } from "./lowering.ts";
import { isRead, isSameBuffer, nameOf, renamed, replace, some, type Fusion, type Value } from "./fusion.ts";

/** Largest head that kernels turn. */
const HEAD_DIM_MAX = 256;
/** Parameters for three positions of a row. */
const SECTIONS = ["time", "height", "width", "interleaved"];
/** Output for rotated queries of `rope_store` when no dispatch reads them. */
const UNUSED = "rope_attention.unused";

/** Norms of q and k for `rope_store`: their inputs, weights, runs, and eps. */
interface Norms {
  readonly q: Value;
  readonly k: Value;
  readonly weights: Operand;
  readonly params: Params;
}

/** Optional norms of q and k, their RoPE, an optional scale of q, the store of k and v. */
export const fuseRopeStore: Fusion = (list, results) =>
  replace(list, (from) => {
    const at = from[0]?.kernel === "rms_norm" && from[1]?.kernel === "rms_norm" ? 2 : 0;
    const [rope, rope2, third] = from.slice(at);
    const scale = third?.kernel === "position_scale" ? third : undefined;
    const length = at + (scale ? 4 : 3);
    const store = from[length - 1];
    if (rope?.kernel !== "rope" || rope2?.kernel !== "rope" || store?.kernel !== "store_kv") return undefined;
    if (rope.params["at"] !== 0 || rope2.params["at"] !== 0) return undefined;
    const [q, turns, batch] = rope.operands as [Value, Operand, Operand]; // see rope.wgsl
    const [k, turns2] = rope2.operands as [Value, Operand];
    const [stored, v, keys, values] = store.operands;
    if (!isSameBuffer(k, stored) || isRead(nameOf(k), from.slice(length), results)) return undefined;
    if (turns.kind !== "rope" || turns2.kind !== "rope" || turns.rope !== turns2.rope) return undefined;
    if (scale && !isSameBuffer(scale.operands[0], q)) return undefined;
    const turning = some(rope, ["heads", "headDim", "pairs", "step", "apart", ...SECTIONS]);
    const { heads = 0, headDim = 0 } = turning;
    if (headDim > HEAD_DIM_MAX || store.params["valueDim"] !== store.params["headDim"]) return undefined;
    const { heads: kvHeads = 0 } = rope2.params;
    const none = { q, k, weights: NONE, params: { norm: 0, eps: 0 } };
    const norms = at > 0 ? normsOf(from, { q, k, headDim }) : none;
    if (!norms) return undefined;
    const scaling = scale ? some(scale, ["coef", "floorScale", "offset"]) : { coef: 0, floorScale: 1, offset: 0 };
    const dispatch: Dispatch = {
      ...store,
      kernel: "rope_store",
      operands: [
        { ...norms.q, access: "read" },
        { ...norms.k, access: "read" },
        v!,
        turns,
        norms.weights,
        { ...q, access: "write" },
        keys!,
        values!,
        batch,
      ],
      params: { ...turning, kvHeads, ...some(store, ["ctxLen"]), ...norms.params, ...scaling },
      grid: { ...store.grid, x: heads + 2 * kvHeads },
    };
    return { length, dispatches: [dispatch] };
  });

/**
 * `rope_store` and attention of few rows, whose own keys then do not go through the cache. Where a sequence has several
 * rows, `rope_store` runs too: every row must read earlier keys from the cache to have the bits of a row alone.
 */
export const fuseRopeAttention: Fusion = (list, results) =>
  replace(list, ([roped, attention, ...rest]) => {
    if (roped?.kernel !== "rope_store" || attention?.kernel !== "attention") return undefined;
    const [q, k, v, turns, norms, turnedQ, keys, values, batch] = roped.operands; // see rope_store.wgsl
    const [query, keys2, , , extras, y, parts] = attention.operands; // see attention.wgsl
    if (!isSameBuffer(turnedQ, query) || !isSameCache(keys, keys2) || [q, k, v].some((raw) => isSameBuffer(raw, y)))
      return undefined;
    if (!isSameBuffer(turnedQ, y) && isRead(nameOf(turnedQ as Value), rest, results)) return undefined;
    const { hasBiases, far: _, ...params } = attention.params;
    const { headDim, valueDim, hasSinks, hasSlopes } = params;
    if (headDim! % 4 !== 0 || valueDim !== headDim || hasSlopes !== 0 || hasBiases !== 0) return undefined;
    const vectors = [norms, extras].flatMap((each) => (each?.kind === "vectors" ? each.weights : []));
    const sinksAt = hasSinks === 0 ? 0 : 1 + normLength(roped.params);
    const fused: Dispatch = {
      ...attention,
      kernel: "rope_attention",
      operands: [q!, k!, v!, turns!, { kind: "vectors", weights: vectors }, keys!, values!, batch!, y!, parts!],
      params: { ...params, ...roped.params, hasSinks: sinksAt }, // both have the same heads and cache
    };
    const { value } = turnedQ as Value;
    const unused: Value = {
      kind: "activation",
      access: "write",
      value: { ...value, buf: { ...value.buf, name: UNUSED } },
    };
    const storing = { ...roped, operands: roped.operands.with(5, unused), grid: { ...roped.grid, repeats: true } };
    return { length: 2, dispatches: [storing, fused] };
  });

/** Number of weights of a norm of q or k. */
function normLength({ norm, headDim = 0, heads = 0, kvHeads = 0 }: Params): number {
  if (norm === 0) return 0;
  return headDim * (norm === 1 ? 2 : heads + kvHeads);
}

const isSameCache = (a: Operand | undefined, b: Operand | undefined): boolean =>
  a?.kind === "cache" && b?.kind === "cache" && a.layer === b.layer && a.part === b.part && a.of === b.of;

/** The norms at the beginning of a list, if they belong to q and k and are alike. */
function normsOf(
  [a, b]: readonly Dispatch[],
  { q, k, headDim }: { q: Value; k: Value; headDim: number },
): Norms | undefined {
  const parts = [a!, b!].map(({ operands, params }) => {
    const [x, w, , y] = operands as [Value, Operand, Operand, Value]; // see rms_norm.wgsl
    const { dim, len, weights, eps, hasResidual } = params;
    return { x, w, y, eps, over: len === headDim ? 1 : len === dim ? 2 : 0, alone: weights === 1 && hasResidual === 0 };
  });
  const [left, right] = parts as [(typeof parts)[0], (typeof parts)[0]]; // same number as inputs
  if (!isSameBuffer(left.y, q) || !isSameBuffer(right.y, k) || !left.alone || !right.alone) return undefined;
  if (left.over === 0 || left.over !== right.over || left.eps !== right.eps) return undefined;
  const weights = [left.w, right.w].flatMap((w) => (w.kind === "vector" && w.weight ? [w.weight] : []));
  return {
    q: left.x,
    k: right.x,
    weights: { kind: "vectors", weights },
    params: { norm: left.over, ...renamed(a!, { eps: "eps" }) },
  };
}
