/**
 * Hyper-connections: the residual stream consists of several parallel streams. A block reads a weighted sum of them,
 * and its output is added to each with a weight of its own. The weights depend on all streams. (arXiv:2409.19606)
 */
import type { Buf, Step } from "../program/step.ts";
import { normSteps } from "./decoder.ts";
import { buffersOf, embedding, output, type Model } from "./model.ts";

const STREAMS_MAX = 64;
const ITERATIONS_MAX = 1000;

interface Parts {
  /** Steps that compute `y` from `h`. */
  readonly attention: readonly Step[];
  readonly ffn: readonly Step[];
}

interface Connections {
  readonly streams: Buf;
  /** Reads the streams: their sum, with weights that the tensors `name` compute. */
  read(name: string, options: Read): Step[];
  /** Adds `y` to the streams, with the weights that `read` has computed. */
  add(): Step[];
}

/** A decoder whose blocks are joined by hyper-connections. */
export function streamsDecoder(
  model: Model,
  parts: (layer: number) => Parts,
  { streams, read, add }: Connections = connections(model),
): Step[] {
  const { dim, nLayers } = model;
  const { x, last, logits } = buffersOf(model);
  const final = { name: "streams.last", dim: streams.dim };
  const block = (layer: number, kind: "attn" | "ffn", steps: readonly Step[]): Step[] => {
    const blk = `blk.${layer}`;
    const { h } = buffersOf(model);
    return [
      ...read(`${blk}.hc_${kind}`, { from: streams, to: h, adds: true }),
      ...normSteps(model, "rms", { out: h, x: h, name: `${blk}.${kind}_norm` }),
      ...steps,
      ...add(),
    ];
  };
  return [
    { op: "embed", out: x, table: embedding(model), scale: 1 },
    ...repeated(x, streams, streams.dim / dim),
    ...Array.from({ length: nLayers }, (_, layer) => {
      const { attention, ffn } = parts(layer);
      return [...block(layer, "attn", attention), ...block(layer, "ffn", ffn)];
    }).flat(),
    { op: "takeRows", out: final, x: streams },
    ...read("output_hc", { from: final, to: last, adds: false }),
    ...normSteps(model, "rms", { out: last, x: last, name: "output_norm" }),
    { op: "linear", out: logits, x: last, ...output(model) },
  ];
}

interface Read {
  readonly from: Buf;
  readonly to: Buf;
  /** True if the tensors also have weights for the block's output. */
  readonly adds: boolean;
}

/**
 * Weights: sigmoid(scale · (fn · norm(streams)) + base) + epsilon; the weights for outputs are multiplied by a
 * magnitude before epsilon is added.
 */
function connections(model: Model): Connections {
  const { dim, eps, keys } = model;
  const count = streamCount(model);
  const floor = keys.number("hyper_connection.epsilon");
  const magnitude = keys.number("hyper_connection.magnitude");
  const { y } = buffersOf(model);
  const buf = (name: string, width: number): Buf => ({ name: `streams.${name}`, dim: width });
  const streams = { name: "streams", dim: count * dim };
  const [normed, spread] = [buf("normed", streams.dim), buf("spread", streams.dim)];
  const [pre, post, least] = [buf("pre", count), buf("post", count), buf("least", count)];

  const read = (name: string, { from, to, adds }: Read): Step[] => {
    const parts = adds ? 2 : 1;
    const weights = buf(`weights.${parts}`, parts * count);
    const fn = model.matrix(`${name}_fn`, { inDim: streams.dim, outDim: weights.dim });
    return [
      { op: "bareRmsNorm", out: normed, x: from, run: streams.dim, eps },
      { op: "linear", out: weights, x: normed, w: fn },
      { op: "multiplyVector", x: weights, w: model.vector(`${name}_scale`, parts) },
      { op: "addVector", x: weights, w: model.vector(`${name}_base`, weights.dim) },
      { op: "activate", x: weights, act: "sigmoid" },
      { op: "slice", out: pre, x: weights, heads: 1, at: 0 },
      // adds epsilon to each weight: a copy whose values are all clamped to it
      { op: "slice", out: least, x: weights, heads: 1, at: 0 },
      { op: "clamp", x: least, min: floor, max: floor },
      { op: "add", out: pre, a: pre, b: least, scale: 1 },
      ...(adds
        ? ([
            { op: "slice", out: post, x: weights, heads: 1, at: count },
            { op: "add", out: post, a: least, b: post, scale: magnitude },
          ] as const)
        : []),
      { op: "mixParts", out: to, x: from, weights: pre, at: 0, parts: count },
    ];
  };

  const add = (): Step[] => [
    { op: "mixParts", out: spread, x: y, weights: post, at: 0, parts: 1 },
    { op: "add", out: streams, a: streams, b: spread, scale: 1 },
  ];
  return { streams, read, add };
}

/**
 * Connections whose streams are also mixed, by a matrix whose rows and columns sum to about 1 (arXiv:2512.24880). The
 * tensors have weights for reading, for the block's output, and for the mixture.
 */
export function mixingConnections(model: Model): Connections {
  const { dim, eps, keys } = model;
  const count = streamCount(model);
  const { y } = buffersOf(model);
  const streams = { name: "streams", dim: count * dim };
  const buf = (name: string, width: number): Buf => ({ name: `streams.${name}`, dim: width });
  const [normed, mixed, spread] = [buf("normed", streams.dim), buf("mixed", streams.dim), buf("spread", streams.dim)];
  const weightsOf = (adds: boolean): Buf => buf(`weights.${adds}`, (adds ? count + 2 : 1) * count);
  const balance = {
    eps: keys.number("hyper_connection.epsilon"),
    iterations: keys.count("hyper_connection.sinkhorn_iterations", { min: 1, max: ITERATIONS_MAX }),
  };
  const read = (name: string, { from, to, adds }: Read): Step[] => {
    const weights = weightsOf(adds);
    return [
      { op: "bareRmsNorm", out: normed, x: from, run: streams.dim, eps },
      {
        op: "linear",
        out: weights,
        x: normed,
        w: model.matrix(`${name}_fn`, { inDim: streams.dim, outDim: weights.dim }),
      },
      {
        op: "streamWeights",
        x: weights,
        scale: model.vector(`${name}_scale`, adds ? 3 : 1),
        base: model.vector(`${name}_base`, weights.dim),
        streams: count,
        ...balance,
      },
      { op: "mixParts", out: to, x: from, weights, at: 0, parts: count },
    ];
  };
  const add = (): Step[] => [
    { op: "mixParts", out: mixed, x: streams, weights: weightsOf(true), at: 2 * count, parts: count },
    { op: "mixParts", out: spread, x: y, weights: weightsOf(true), at: count, parts: 1 },
    { op: "add", out: streams, a: mixed, b: spread, scale: 1 },
  ];
  return { streams, read, add };
}

const streamCount = ({ keys }: Model): number => keys.count("hyper_connection.count", { min: 2, max: STREAMS_MAX });

/** `count` copies of x, concatenated per row; at least two. */
function repeated(x: Buf, out: Buf, count: number): Step[] {
  const copies = (n: number): Buf => {
    if (n === 1) return x;
    return n === count ? out : { name: `streams.copies.${n}`, dim: n * x.dim };
  };
  return Array.from({ length: count - 1 }, (_, i) => {
    return { op: "join", out: copies(i + 2), a: copies(i + 1), b: x, heads: 1 } as const;
  });
}
