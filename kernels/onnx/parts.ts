/** Elementwise steps and copies: products, limits, parts of rows. */
import type { Buf, Ops } from "../../src/engine/program/step.ts";
import { activate } from "./activation.ts";
import { setValue, valueOf, type Lowering } from "./lowering.ts";

type PartOp = "multiply" | "activate" | "clamp" | "slice" | "join";

/** A buffer as (…, heads, its part of each). */
function inHeads(lowering: Lowering, buf: Buf, heads: number): string {
  const { graph } = lowering;
  return graph.node("Reshape", [valueOf(lowering, buf), graph.ints([0, 0, heads, buf.dim / heads])]);
}

/** (…, heads, part) as a row again. */
const asRow = ({ graph }: Lowering, value: string, dim: number): string =>
  graph.node("Reshape", [value, graph.ints([0, 0, dim])]);

export const partOps: Pick<Ops<void, Lowering>, PartOp> = {
  multiply({ out, a, b, act }, lowering) {
    const { graph } = lowering;
    const factor = act ? activate(lowering, act, valueOf(lowering, b)) : valueOf(lowering, b);
    if (a.dim === b.dim) return setValue(lowering, out, graph.node("Mul", [valueOf(lowering, a), factor]));
    const each = graph.node("Reshape", [factor, graph.ints([0, 0, b.dim, 1])]);
    setValue(lowering, out, asRow(lowering, graph.node("Mul", [inHeads(lowering, a, b.dim), each]), a.dim));
  },
  activate: ({ x, act }, lowering) => setValue(lowering, x, activate(lowering, act, valueOf(lowering, x))),
  clamp: ({ x, min, max }, lowering) => setValue(lowering, x, limited(lowering, valueOf(lowering, x), [min, max])),
  slice({ out, x, heads, at }, lowering) {
    const { graph } = lowering;
    const bounds = [at, at + out.dim / heads].map((place) => graph.ints([place]));
    const cut = graph.node("Slice", [inHeads(lowering, x, heads), ...bounds, graph.ints([3])]);
    setValue(lowering, out, asRow(lowering, cut, out.dim));
  },
  join({ out, a, b, heads }, lowering) {
    const both = [a, b].map((buf) => inHeads(lowering, buf, heads));
    setValue(lowering, out, asRow(lowering, lowering.graph.node("Concat", both, { axis: 3 }), out.dim));
  },
};

/** Values limited to `least` … `most`. */
export function limited({ graph }: Lowering, x: string, bounds: readonly [least: number, most: number]): string {
  return graph.node("Clip", [x, ...bounds.map((bound) => graph.floats(Float32Array.of(bound), []))]);
}
