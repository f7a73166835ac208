/**
 * Dispatch[] → Dispatch[]: neighbours that one kernel does at once. Each function here is one such fusion; what it does
 * not recognize it leaves alone. A decode step of a plain llama then takes eight dispatches a layer.
 */
import type { Activation, Dispatch, Operand, Param } from "./dispatch.ts";

/** All fusions, in order. @param results buffers that are read when the dispatches are done */
export function fuse(dispatches: readonly Dispatch[], results: readonly string[]): Dispatch[] {
  return [fuseResidual, fuseGated, fuseRopeStore, fuseThree].reduce<Dispatch[]>(
    (list, fusion) => fusion(list, new Set(results)),
    [...dispatches],
  );
}

type Fusion = (dispatches: readonly Dispatch[], results: ReadonlySet<string>) => Dispatch[];
type Value = Extract<Operand, { kind: "activation" }>;

/** y = W · x, then z = a + y · s, where nobody else reads y. */
const fuseResidual: Fusion = (list, results) =>
  replaceRuns(list, 2, ([product, add], rest) => {
    if (!isProduct(product) || add?.kernel !== "add") return undefined;
    const [x, w, b, , y, ...others] = product.operands;
    const [left, right, z] = add.operands as [Value, Value, Value]; // see add.wgsl
    if (y?.kind !== "activation" || y.access !== "write") return undefined;
    const name = y.value.buf.name;
    const scale = floatOf(add.params[1]);
    const isLeft = left.value.buf.name === name;
    if (isLeft === (right.value.buf.name === name) || (isLeft && scale !== 1)) return undefined;
    if (z.value.buf.name !== name && isRead(name, rest, results)) return undefined;
    const params = product.params.with(8, 1).with(9, { f32: scale });
    return { ...product, operands: [x!, w!, b!, isLeft ? right : left, z, ...others], params, step: add.step };
  });

/** up = act(gate · x) ⊙ (up · x), for few rows. */
const fuseGated: Fusion = (list, results) =>
  replaceRuns(list, 3, ([gate, up, join], rest) => {
    if (gate?.kernel !== "linear" || up?.kernel !== "linear" || join?.kernel !== "gate") return undefined;
    const [x, w, b, , gated, batch] = gate.operands;
    const [x2, w2, b2, , y] = up.operands;
    const [read, updated] = join.operands;
    if (!isPlain(gate) || !isPlain(up) || !isSame(x, x2) || !isSame(read, gated) || !isSame(updated, y))
      return undefined;
    if (isRead((gated as Value).value.buf.name, rest, results)) return undefined;
    const [inDim, count, first, rowBytes, , , hasBias, factor, , , wanted] = gate.params;
    const [, , first2, rowBytes2, , , hasBias2, factor2] = up.params;
    const own = [inDim, count, first, rowBytes, hasBias, factor];
    const others = [first2, rowBytes2, hasBias2, factor2, join.params[1], wanted];
    return {
      ...join,
      kernel: "gated_linear",
      quants: [...(gate.quants ?? []), ...(up.quants ?? [])],
      operands: [x!, w!, w2!, b!, b2!, y!, batch!],
      params: [...own, ...others] as Param[], // a product has them all
      grid: up.grid,
    };
  });

/** Rotations of q and k, and the store of k and v. */
const fuseRopeStore: Fusion = (list, results) =>
  replaceRuns(list, 3, ([rope, rope2, store], rest) => {
    if (rope?.kernel !== "rope" || rope2?.kernel !== "rope" || store?.kernel !== "store_kv") return undefined;
    const [q, cos, sin, batch] = rope.operands;
    const [k, cos2] = rope2.operands;
    const [stored, v, keys, values] = store.operands;
    if (!isSame(k, stored) || isRead((k as Value).value.buf.name, rest, results)) return undefined;
    if (cos?.kind !== "rope" || cos2?.kind !== "rope" || cos.rope !== cos2.rope) return undefined;
    const [, heads, headDim, pairs, step, apart] = rope.params as number[]; // see rope.wgsl
    const kvHeads = rope2.params[1] as number;
    const threads = heads! * pairs! + 2 * kvHeads * headDim!;
    return {
      ...store,
      kernel: "rope_store",
      operands: [q!, { ...(k as Value), access: "read" }, v!, cos, sin!, keys!, values!, batch!],
      params: [heads!, kvHeads, headDim!, pairs!, step!, apart!, store.params[1]!],
      grid: { ...store.grid, x: Math.ceil(threads / 64) },
    };
  });

/** Three products of the same rows without biases, for few rows. */
const fuseThree: Fusion = (list) =>
  replaceRuns(list, 3, (three) => {
    const [first] = three;
    if (!first || !three.every((each) => each.kernel === "linear" && isPlain(each) && each.params[6] === 0))
      return undefined;
    if (!three.every(({ operands }) => isSame(operands[0], first.operands[0]))) return undefined;
    const outs = three.map(({ operands }) => operands[4] as Value); // a product's, see linear.wgsl
    if (outs.some((out) => isSame(out, first.operands[0])) || new Set(outs.map(nameOf)).size < 3) return undefined;
    return {
      kernel: "linear_3",
      quants: three.flatMap(({ quants }) => quants ?? []),
      operands: [first.operands[0]!, ...three.map(({ operands }) => operands[1]!), ...outs, first.operands[5]!],
      params: [
        first.params[0]!,
        ...three.flatMap(({ params }) => [params[1]!, params[2]!, params[3]!, params[7]!]),
        first.params[10]!,
      ],
      grid: { ...first.grid, x: three.reduce((sum, { grid }) => sum + grid.x, 0) },
      step: three[2]!.step, // `replaceRuns` gives as many
    };
  });

/** Replaces every run of `length` neighbours that `make` makes one of. It gets them, and all behind them. */
function replaceRuns(
  list: readonly Dispatch[],
  length: number,
  make: (run: readonly Dispatch[], rest: readonly Dispatch[]) => Dispatch | undefined,
): Dispatch[] {
  const out: Dispatch[] = [];
  for (let i = 0; i < list.length; i++) {
    const end = i + length;
    const made = end <= list.length ? make(list.slice(i, end), list.slice(end)) : undefined;
    out.push(made ?? list[i]!);
    if (made) i = end - 1;
  }
  return out;
}

const isProduct = (dispatch: Dispatch | undefined): dispatch is Dispatch =>
  dispatch !== undefined && (dispatch.kernel === "linear" || dispatch.kernel === "matmul") && isPlain(dispatch);

/** A product of a whole matrix, with nothing added yet. */
function isPlain({ operands, params }: Dispatch): boolean {
  const out = operands[4];
  if (out?.kind !== "activation" || out.access !== "write") return false;
  return params[1] === out.value.buf.dim && params[8] === 0;
}

const nameOf = ({ value }: { value: Activation }): string => value.buf.name;

const isSame = (a: Operand | undefined, b: Operand | undefined): boolean =>
  a?.kind === "activation" && b?.kind === "activation" && nameOf(a) === nameOf(b);

const floatOf = (param: Param | undefined): number => (typeof param === "object" ? param.f32 : NaN);

/** Whether a buffer's present value is read before the next one. */
function isRead(name: string, rest: readonly Dispatch[], results: ReadonlySet<string>): boolean {
  for (const { operands } of rest) {
    const uses = operands.filter((operand) => operand.kind === "activation" && nameOf(operand) === name) as Value[];
    if (uses.some(({ access }) => access !== "write")) return true;
    if (uses.length > 0) return false;
  }
  return results.has(name);
}
