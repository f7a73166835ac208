/**
 * Apertus: Llama with QK-norm, and an MLP without a gate whose activation is xIELU (arXiv:2411.13010): αp · x² + β · x
 * above 0, else αn · (e^x − 1 − x) + β · x, with parameters for each layer. Semantics: src/models/apertus.cpp and
 * `ggml_xielu` of llama.cpp.
 */
import { AppError } from "../../base/index.ts";
import type { Step } from "../program/step.ts";
import { buffersOf, plainMlp, type Model } from "./model.ts";
import { sequential } from "./sequential.ts";

export function apertus(model: Model): Step[] {
  const { keys, nLayers } = model;
  const parameters = (name: string): number[] => keys.numbers(`xielu.${name}`, NaN, nLayers);
  const [alphaN, alphaP, betas] = [parameters("alpha_n"), parameters("alpha_p"), parameters("beta")];
  checkLimits(model, parameters("eps"));
  return sequential(model, {
    rope: "neox",
    needsQkNorm: true,
    ffn: (layer) =>
      mlp(model, layer, {
        alphaN: betas[layer]! + softplus(alphaN[layer]!),
        alphaP: softplus(alphaP[layer]!),
        beta: betas[layer]!,
      }),
  });
}

/**
 * Refuses limits with which the exact formula would differ: files limit e^x for larger x up to 0, which makes no
 * difference for limits next to 0.
 */
function checkLimits({ path }: Model, limits: readonly number[]): void {
  const wrong = limits.find((limit) => !(limit <= 0 && limit >= LIMIT_MIN));
  if (wrong === undefined) return;
  throw new AppError("unsupported", `${path}: 'xielu.eps': expected ${LIMIT_MIN} … 0, got ${wrong}`);
}

/** Published models have −10⁻⁶. */
const LIMIT_MIN = -1e-4;

const softplus = (x: number): number => (x > 20 ? x : Math.log1p(Math.exp(x)));

interface Xielu {
  readonly alphaN: number;
  readonly alphaP: number;
  readonly beta: number;
}

/** From `h` to `y`. xIELU(u) = αn · (elu(u) − u) + β · u + αp · u · relu(u) */
function mlp(model: Model, layer: number, { alphaN, alphaP, beta }: Xielu): Step[] {
  const { h, y } = buffersOf(model);
  const { up, upB, down, downB } = plainMlp(model, layer);
  const [u, squares, inner] = ["up", "squares", "inner"].map((name) => ({ name: `mlp.${name}`, dim: model.ffnDim }));
  return [
    { op: "linear", out: u!, x: h, w: up, ...(upB && { b: upB }) },
    { op: "multiply", out: squares!, a: u!, b: u!, act: "relu" },
    { op: "slice", out: inner!, x: u!, heads: 1, at: 0 },
    { op: "activate", x: inner!, act: "elu" },
    { op: "scale", x: inner!, by: alphaN },
    { op: "add", out: inner!, a: inner!, b: u!, scale: beta - alphaN },
    { op: "add", out: inner!, a: inner!, b: squares!, scale: alphaP },
    { op: "linear", out: y, x: inner!, w: down, ...(downB && { b: downB }) },
  ];
}
