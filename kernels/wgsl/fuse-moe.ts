/** Fuses the shared expert's MLP into the dispatch of the other experts. */
import type { Dispatch, Operand } from "./dispatch.ts";
import { isRead, isSameBuffer, nameOf, renamed, replace, type Fusion, type Value } from "./fusion.ts";

/** Bindings of the second MLP in moe_gated_shared. */
const BINDINGS = { w: 3, y: 8 };

/** Parameters that both MLPs share. */
const GATING = ["kind", "gateLimit", "upLimit"];

/** Names of its parameters there. */
const SHAPE = {
  sharedCount: "count",
  first3: "first",
  rowBytes3: "rowBytes",
  first4: "firstUp",
  rowBytes4: "rowBytesUp",
};

/**
 * gated_linear and the product with its result, then a router, its choice and moe_gated of the same rows: gated_linear
 * moves into moe_gated_shared, and the product after it.
 */
export const fuseSharedExpert: Fusion = (list, results) =>
  replace(list, ([mlp, down, router, route, experts, ...rest]) => {
    if (mlp?.kernel !== "gated_linear" || down?.kernel !== "linear") return undefined;
    if (router?.kernel !== "linear" || route?.kernel !== "moe_route" || experts?.kernel !== "moe_gated")
      return undefined;
    const [x, w, w2, , , y] = mlp.operands as [Value, Operand, Operand, Operand, Operand, Value];
    if (
      !isSameBuffer(x, experts.operands[0]) ||
      !isSameBuffer(x, router.operands[0]) ||
      !isSameBuffer(y, down.operands[0])
    )
      return undefined;
    // Moved dispatches must not pass their inputs or readers.
    const made = down.operands[4]!; // see linear.wgsl
    if ([...router.operands, ...experts.operands].some((operand) => isSameBuffer(operand, made))) return undefined;
    if (isRead(nameOf(y), rest, results)) return undefined;
    const { hasBias, hasBiasUp, factor, factorUp } = mlp.params;
    if (hasBias !== 0 || hasBiasUp !== 0 || factor !== 1 || factorUp !== 1) return undefined;
    if (GATING.some((name) => mlp.params[name] !== experts.params[name])) return undefined;
    return { length: 5, dispatches: [router, route, together(), down] };

    function together(): Dispatch {
      const { operands, params, quants, grid } = experts!;
      return {
        ...experts!,
        kernel: "moe_gated_shared",
        quants: [...quants!, ...mlp!.quants!],
        operands: operands
          .with(BINDINGS.w, w)
          .with(BINDINGS.w + 1, w2)
          .with(BINDINGS.y, y),
        params: { ...params, ...renamed(mlp!, SHAPE) },
        grid: { ...grid, x: Math.max(grid.x, mlp!.grid.x), times: grid.times + 1 },
      };
    }
  });
