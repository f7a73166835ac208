/**
 * Decoders with `attention.causal = false`: rows attend in both directions, and the result of a text is its vector, not
 * a next token. Semantics: `causal_attn` of llama.cpp.
 */
import { writtenBy } from "../program/describe.ts";
import type { Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { buffersOf, type Model } from "./model.ts";

/** The steps without logits and with bidirectional attention. Throws `unsupported` if a layer does not support that. */
export function twoSided(model: Model, steps: readonly Step[]): Step[] {
  const { logits } = buffersOf(model);
  const turned = steps.filter((step) => writtenBy(step).name !== logits.name).map((step) => turn(model, step));
  const known = turned.some(({ op }) => op === "bidirectionalAttention");
  if (!known) throw oneWay(model, "without attention");
  return turned;
}

function turn(model: Model, step: Step): Step {
  switch (step.op) {
    case "attention": {
      const { window, softCap, sinks, chunked, valueDim = step.headDim } = step;
      if (window > 0) throw oneWay(model, "attention with a window");
      if (softCap > 0 || sinks || chunked || step.chosen || valueDim !== step.headDim)
        throw oneWay(model, "this kind of attention");
      const { out, q, k, v, nHeads, nKvHeads, headDim, scale, alibi } = step;
      const shape = { nHeads, nKvHeads, headDim, scale, ...(alibi !== undefined && { alibi }) };
      return { op: "bidirectionalAttention", out, q, k, v, ...shape };
    }
    case "sharedAttention":
    case "latentAttention":
    case "choosePositions":
      throw oneWay(model, "this kind of attention");
    case "causalConv":
      return centered(model, step);
    case "previousRow":
    case "deltaRule":
    case "wkv":
    case "selectiveScan":
      throw oneWay(model, "a recurrent layer");
    default:
      return step;
  }
}

/** The convolution centred on each row; an even number of taps has no centre. */
function centered(model: Model, { x, out, w, b, act }: Extract<Step, { op: "causalConv" }>): Step {
  if (w.inDim % 2 === 0 || out.name === x.name) throw oneWay(model, "this kind of convolution");
  return { op: "centeredConv", out, x, w, ...(b && { b }), ...(act && { act }) };
}

const oneWay = ({ path, keys }: Model, what: string): AppError =>
  new AppError(
    "unsupported",
    `${path}: '${keys.arch}.attention.causal': expected true, got false: ${what} cannot be bidirectional`,
  );
