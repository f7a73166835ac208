/**
 * Gemma 4's encoder: two convolutions over a spectrogram, and conformer layers, each with two halves of an MLP around
 * attention over the last twelve rows and a causal convolution. Semantics: tools/mtmd/models/gemma4a.cpp of llama.cpp.
 */
import { makeSources } from "../../architectures/adapter-changes.ts";
import { AppError } from "../../../base/index.ts";
import { quants } from "../../formats/quant/index.ts";
import type { Buf, Step, Weight } from "../../program/step.ts";
import { SAMPLE_RATE } from "../../audio/sound.ts";
import { widthOf, type EncoderModel } from "../../vision/clip.ts";
import { norm, project, towerBuffers } from "../../vision/tower.ts";
import { channelCount, convolutionStage, convolved, type Kernel } from "../convolution.ts";
import { asRows, type AudioEncoderSpec, type Sheet, type Stage } from "../encoder-spec.ts";
import { HOP, spectrogram } from "../mel.ts";
import { positionKey, positionQuery, positionRope, POSITION_DIM, WINDOW } from "../relative-positions.ts";

/** Epsilon of all norms; files have another. */
const EPS = 1e-6;
const SOFT_CAP = 50;
const BINS_MAX = 1024;
const PIECE = 30 * SAMPLE_RATE;
const FFT = 512;
const FRAME = 320;
/** Floor of band values before the logarithm. */
const FLOOR = 0.001;
/** Base of the periods of the distances' sines and cosines. */
const PERIOD = 10_000;

const kernel: Kernel = { time: 3, bins: 3, stride: 2, padding: 1, fastest: "bins" };
const twice = (length: number): number => convolved(convolved(length, 3, kernel), 3, kernel);
const framesOf = (samples: number): number => Math.max(1, Math.floor((samples + FRAME / 2 - (FRAME + 1)) / HOP) + 1);
const ROWS_MAX = twice(framesOf(PIECE));

export function gemma4a(file: EncoderModel): AudioEncoderSpec {
  const bins = file.keys.count("audio.num_mel_bins", { min: 1, max: BINS_MAX });
  const sources = makeSources(file.weights, []);
  const model = { ...file, eps: EPS };
  const channels = [0, 1].map((i) => channelCount(model, `a.conv1d.${i}`));
  return {
    before: "<|audio>",
    after: "<audio|>",
    rowsOf: (samples) => piecesOf(samples).map(({ first, end }) => twice(framesOf(end - first))),
    *listen(samples) {
      const sheets: Sheet[] = [];
      for (const { first, end } of piecesOf(samples.length)) {
        sheets.push(yield* frames(samples.subarray(first, end), bins));
      }
      return sheets;
    },
    weights: sources.weights,
    stages: [
      ...channels.map((to, i) =>
        convolutionStage(model, {
          name: `a.conv1d.${i}`,
          from: channels[i - 1] ?? 1,
          to,
          kernel,
          act: "relu",
          mayHaveNorm: true,
        }),
      ),
      conformer({ model, sources }, twice(bins) * channels[1]!),
    ],
  };
}

/** Segments of 30 seconds; the last may be shorter. */
function piecesOf(samples: number): { first: number; end: number }[] {
  return Array.from({ length: Math.max(1, Math.ceil(samples / PIECE)) }, (_, i) => ({
    first: i * PIECE,
    end: Math.min(samples, (i + 1) * PIECE),
  }));
}

/** The logarithms of the magnitudes of frames; the first begins half a frame before the piece. */
function* frames(samples: Float32Array, bins: number) {
  const count = framesOf(samples.length);
  const padded = new Float32Array((count - 1) * HOP + FFT);
  const before = FRAME / 2 + (FFT - FRAME) / 2; // a frame is in the middle of its transform
  padded.set(samples.subarray(0, padded.length - before), before);
  const options = {
    bins,
    fft: FFT,
    hop: HOP,
    window: FRAME,
    range: [0, SAMPLE_RATE / 2],
    scale: "htk",
    norm: "none",
    power: 1,
  } as const;
  const values = yield* spectrogram(padded, options, (value) => Math.log(Math.max(FLOOR, value)));
  return { values, batches: 1, time: count, bins, channels: 1 };
}

interface Given {
  readonly model: EncoderModel;
  readonly sources: ReturnType<typeof makeSources>;
}

/** @param width of a row after the convolutions */
function conformer(given: Given, width: number): Stage {
  const { model } = given;
  const { dim, nLayers, nHeads, path } = model;
  if (nHeads === 0 || dim % nHeads !== 0) {
    const expected = `heads that divide ${dim} dimensions`;
    throw new AppError("bad_file", `${path}: 'clip.audio.attention.head_count': expected ${expected}, got ${nHeads}`);
  }
  const { x } = towerBuffers(model);
  const frames = { name: "frames", dim: width };
  const hasOut = model.has("a.pre_encode.out.weight");
  const wide = { name: "wide", dim: hasOut ? widthOf(model, "a.pre_encode.out") : dim };
  const projected = { name: "projected", dim: widthOf(model, "mm.a.input_projection") };
  const last = hasOut ? wide : x;
  const steps: Step[] = [
    { op: "input", out: frames },
    ...project(model, "a.input_projection", { out: x, x: frames }),
    ...Array.from({ length: nLayers }, (_, layer) => layerSteps(given, layer)).flat(),
    ...(hasOut ? project(model, "a.pre_encode.out", { out: wide, x }) : []),
    model.has("mm.a.soft_emb_norm.weight")
      ? norm(model, "rms", { out: last, x: last, name: "mm.a.soft_emb_norm" })
      : { op: "bareRmsNorm", out: last, x: last, run: last.dim, eps: EPS },
    ...project(model, "mm.a.input_projection", { out: projected, x: last }),
  ];
  return {
    part: { steps, result: projected },
    rowsMax: ROWS_MAX,
    isRowwise: false,
    inputOf: (sheet) => ({
      ...asRows({ ...sheet, bins: 1, channels: sheet.bins * sheet.channels }),
      positionOf: (row) => row % WINDOW,
    }),
  };
}

function layerSteps(given: Given, layer: number): Step[] {
  const { model } = given;
  const { x, h, y } = towerBuffers(model);
  const blk = `a.blk.${layer}`;
  const normed = (from: string, { out, x: read }: { out: Buf; x: Buf }): Step[] =>
    model.has(`${blk}.${from}.weight`) ? [norm(model, "rms", { out, x: read, name: `${blk}.${from}` })] : [];
  const half = (suffix: string): Step[] => {
    const up = { name: "mlp.up", dim: model.rows(`${blk}.ffn_up${suffix}`) ?? model.dim };
    return [
      norm(model, "rms", { out: h, x, name: `${blk}.ffn_norm${suffix}` }),
      ...project(model, `${blk}.ffn_up${suffix}`, { out: up, x: h }),
      { op: "activate", x: up, act: "silu" },
      ...project(model, `${blk}.ffn_down${suffix}`, { out: y, x: up }),
      ...normed(`ffn_post_norm${suffix}`, { out: y, x: y }),
      { op: "add", out: x, a: x, b: y, scale: 0.5 },
    ];
  };
  const before = model.has(`${blk}.attn_pre_norm.weight`) ? "attn_pre_norm" : "ln1";
  return [
    ...half(""),
    norm(model, "rms", { out: h, x, name: `${blk}.${before}` }),
    ...attention(given, layer),
    ...normed("attn_post_norm", { out: y, x: y }),
    { op: "add", out: x, a: x, b: y, scale: 1 },
    ...convolution(model, layer),
    ...half("_1"),
    ...normed("ln2", { out: x, x }),
  ];
}

/** Attention of a layer to the last rows, from `h` to `y`: a part of the scores depends on the distance. */
function attention({ model, sources }: Given, layer: number): Step[] {
  const { nHeads, headDim, dim } = model;
  const { h, y, q, k, v, heads } = towerBuffers(model);
  const blk = `a.blk.${layer}`;
  const part = (name: string, size: number): Buf => ({ name, dim: nHeads * size });
  const [qPosition, kPosition] = [part("q.position", POSITION_DIM), part("k.position", POSITION_DIM)];
  const [qAll, kAll] = [part("q.all", headDim + POSITION_DIM), part("k.all", headDim + POSITION_DIM)];
  const made = (name: string, shape: readonly [number, number, number], make: () => Float32Array): Weight => {
    const [inDim, outDim, experts] = shape;
    sources.put(`${blk}.${name}`, () => new Uint8Array(make().buffer as ArrayBuffer));
    return { name: `${blk}.${name}`, quant: quants.f32, inDim, outDim, rowStart: 0, tensorRows: outDim, experts };
  };
  const scaled = (x: Buf, name: string, by: number): Step => {
    const own = model.values(`${blk}.${name}`, headDim);
    const values = (): Float32Array => Float32Array.from({ length: dim }, (_, i) => by * (own?.[i % headDim] ?? 1));
    return { op: "multiplyVector", x, w: made(`made.${name}`, [dim, 1, 1], values) };
  };
  const turned = (x: Buf): Step => ({ op: "rope", x, heads: nHeads, headDim: POSITION_DIM, rope: positionRope });
  const distances = distancesOf(model, `${blk}.attn_k_rel`);
  return [
    ...project(model, `${blk}.attn_q`, { out: q, x: h }),
    ...project(model, `${blk}.attn_k`, { out: k, x: h }),
    ...project(model, `${blk}.attn_v`, { out: v, x: h }),
    scaled(q, "per_dim_scale", 1 / Math.sqrt(headDim) / Math.LN2),
    scaled(k, "per_dim_k_scale", Math.log(1 + Math.E) / Math.LN2),
    {
      op: "headLinear",
      out: qPosition,
      x: q,
      w: made("made.q_position", [headDim, POSITION_DIM, nHeads], () => positionQuery(distances(), nHeads)),
      transposed: false,
    },
    { op: "slice", out: kPosition, x: qPosition, heads: 1, at: 0 }, // any values of its size
    { op: "scale", x: kPosition, by: 0 },
    {
      op: "addVector",
      x: kPosition,
      w: made("made.k_position", [kPosition.dim, 1, 1], () => {
        const own = positionKey();
        return Float32Array.from({ length: kPosition.dim }, (_, i) => own[i % POSITION_DIM]!);
      }),
    },
    turned(qPosition),
    turned(kPosition),
    { op: "join", out: qAll, a: q, b: qPosition, heads: nHeads },
    { op: "join", out: kAll, a: k, b: kPosition, heads: nHeads },
    {
      op: "attention",
      out: heads,
      q: qAll,
      k: kAll,
      v,
      layer,
      nHeads,
      nKvHeads: nHeads,
      headDim: headDim + POSITION_DIM,
      valueDim: headDim,
      scale: 1,
      window: WINDOW,
      softCap: SOFT_CAP,
      rope: undefined,
    },
    ...project(model, `${blk}.attn_out`, { out: y, x: heads }),
  ];
}

/** Vectors that queries are multiplied with, (WINDOW, dim): projected sines and cosines of each distance. */
function distancesOf(model: EncoderModel, name: string): () => Float32Array {
  const { dim } = model;
  if (!model.has(`${name}.weight`)) return () => new Float32Array(WINDOW * dim);
  const table = model.matrix(name, { inDim: dim, outDim: dim });
  const waves = Math.floor(dim / 2);
  const step = Math.log(PERIOD) / Math.max(waves - 1, 1);
  return () => {
    const rows = model.floats(table);
    const out = new Float32Array(WINDOW * dim);
    for (let distance = 0; distance < WINDOW; distance++) {
      const wave = Float64Array.from({ length: 2 * waves }, (_, i) => {
        const angle = distance * Math.exp(-(i % waves) * step);
        return i < waves ? Math.sin(angle) : Math.cos(angle);
      });
      for (let row = 0; row < dim; row++) {
        let sum = 0;
        for (let i = 0; i < wave.length; i++) sum += rows[row * dim + i]! * wave[i]!;
        out[distance * dim + row] = sum;
      }
    }
    return out;
  };
}

/** A gated linear step, a convolution over this row and earlier ones, and a linear step; added to the stream. */
function convolution(model: EncoderModel, layer: number): Step[] {
  const { dim } = model;
  const { x, h, y } = towerBuffers(model);
  const blk = `a.blk.${layer}`;
  const [both, gate, mixed] = [
    { name: "conv.both", dim: 2 * dim },
    { name: "conv.gate", dim },
    { name: "conv.mixed", dim },
  ];
  const taps = model.shape(`${blk}.conv_dw`)?.[0] ?? 0;
  const b = model.bias(`${blk}.conv_dw`, dim);
  const after = `${blk}.norm_conv`; // the names of the two norms are swapped in files
  return [
    norm(model, "rms", { out: h, x, name: `${blk}.conv_norm` }),
    ...project(model, `${blk}.conv_pw1`, { out: both, x: h }),
    { op: "slice", out: mixed, x: both, heads: 1, at: 0 },
    { op: "slice", out: gate, x: both, heads: 1, at: dim },
    { op: "multiply", out: mixed, a: mixed, b: gate, act: "sigmoid" },
    {
      op: "causalConv",
      out: mixed,
      x: mixed,
      w: model.matrix(`${blk}.conv_dw`, { inDim: taps, outDim: dim }),
      ...(b && { b }),
      layer,
    },
    ...(model.has(`${after}.weight`) ? [norm(model, "rms", { out: mixed, x: mixed, name: after })] : []),
    { op: "activate", x: mixed, act: "silu" },
    ...project(model, `${blk}.conv_pw2`, { out: y, x: mixed }),
    { op: "add", out: x, a: x, b: y, scale: 1 },
  ];
}
