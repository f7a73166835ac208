/** The activation functions of gated layers. */
import type { Activation } from "../../src/engine/program/step.ts";
import type { Lowering } from "./lowering.ts";

export function activate({ graph }: Lowering, act: Activation, x: string): string {
  switch (act) {
    case "silu":
      return graph.node("QuickGelu", [x], { alpha: { float: 1 } }); // x · sigmoid(alpha · x)
    case "gelu":
      return graph.node("Gelu", [x], { approximate: "tanh" });
    case "gelu_erf":
      return graph.node("Gelu", [x], { approximate: "none" });
    case "relu":
      return graph.node("Relu", [x]);
    case "relu_sqr": {
      const positive = graph.node("Relu", [x]);
      return graph.node("Mul", [positive, positive]);
    }
    case "sigmoid":
      return graph.node("Sigmoid", [x]);
    case "softplus":
      return graph.node("Softplus", [x]);
    case "elu":
      return graph.node("Elu", [x]);
    case "tanh":
      return graph.node("Tanh", [x]);
    default:
      return act satisfies never;
  }
}
