/**
 * A projector file: an image encoder and its connection to a text model, architecture `clip`. Keys, tensor names and
 * defaults are llama.cpp's (tools/mtmd/clip-impl.h and clip.cpp).
 */
import type { WeightSource } from "../program/backend.ts";
import type { Activation, Weight } from "../program/step.ts";
import { unpackRows } from "../program/unpack.ts";
import { AppError } from "../../base/index.ts";
import { keysOf, type Keys } from "../architectures/hparams.ts";
import { tensorsOf, type Tensors } from "../architectures/tensors.ts";
import type { Gguf, Metadata } from "../formats/gguf/gguf.ts";
import { getBool, getString } from "../formats/gguf/keys.ts";
import type { Rgb } from "./image.ts";
import type { Colours } from "./prepare.ts";

/**
 * Limits are four times the maximum of published encoders: 6,400 dimensions, 64 layers, patches of 16, images of 1,540
 * pixels.
 */
const DIM_MAX = 25_600;
const FFN_DIM_MAX = 102_400;
const LAYERS_MAX = 256;
const HEADS_MAX = 256;
const HEAD_DIM_MAX = 1024;
const PATCH_MAX = 64;
const SIDE_MAX = 6144;
const TEXT_DIM_MAX = 262_144;

/** x · σ(1.702 x), which is made of other steps: see `quickGelu` in tower.ts. */
type ClipActivation = Activation | "gelu_quick";

/** An encoder of images or of recordings: a file may have one of each. */
export interface EncoderModel extends Tensors {
  readonly path: string;
  readonly keys: Keys;
  /** The section of its keys. */
  readonly section: "vision" | "audio";
  /** The first part of its tensors' names. */
  readonly prefix: "v" | "v.global" | "a";
  /** `clip.projector_type` */
  readonly kind: string;
  readonly weights: WeightSource;
  readonly dim: number;
  readonly ffnDim: number;
  readonly nLayers: number;
  readonly nHeads: number;
  readonly nKvHeads: number;
  readonly headDim: number;
  readonly eps: number;
  readonly act: ClipActivation;
  /** A float32 copy of some rows of a small table; default: all. */
  floats(weight: Weight, rows?: { first: number; count: number }): Float32Array;
}

export interface ClipModel extends EncoderModel {
  /** Side of an image if all images have one size. */
  readonly imageSize: number;
  /** Side of a patch. */
  readonly patch: number;
  readonly colours: Colours;
}

/**
 * Tensors of audio encoders in the same file; ranges of activations, LLaVA 1.6's line ends, and a table that llama.cpp
 * computes instead.
 */
const IGNORED = /^(a|mm\.a)\.|\.input_scale$|^model\.image_newline$|^resampler\.pos_embed_k$/;

/** Tensors of image encoders in the same file as an audio encoder. */
const IGNORED_BESIDE_AUDIO = /^v\.|^mm\.(?!a\.)|\.input_scale$/;

/** The kind of Qwen2.5-Omni's files, which have two encoders under one name, and the kinds of the two. */
const BOTH: Readonly<Record<string, { vision: string; audio: string }>> = {
  "qwen2.5o": { vision: "qwen2.5vl_merger", audio: "qwen2a" },
};

/** The projector kind of a file; empty if the file has no such encoder. */
export function projectorKind(metadata: Metadata, section: EncoderModel["section"] = "vision"): string {
  const text = (key: string): string => getString(metadata, `clip.${key}`, "");
  if (!getBool(metadata, `clip.has_${section}_encoder`, false)) return "";
  const kind = text("projector_type") || text(`${section}.projector_type`);
  return BOTH[kind]?.[section] ?? kind;
}

/** Checks keys and hyperparameters of an image encoder; tensors are checked when requested. */
export function openClip(gguf: Gguf): ClipModel {
  const model = openEncoder(gguf, "vision");
  const { keys, path } = model;
  return {
    ...model,
    imageSize: keys.count("vision.image_size", { min: 1, max: SIDE_MAX }),
    patch: keys.count("vision.patch_size", { min: 1, max: PATCH_MAX }),
    colours: { mean: coloursOf(keys, path, "image_mean"), std: coloursOf(keys, path, "image_std") },
  };
}

/** The part of an encoder that images and recordings have in common. */
export function openEncoder(gguf: Gguf, section: EncoderModel["section"]): EncoderModel {
  const { path } = gguf;
  const arch = gguf.metadata.get("general.architecture");
  if (arch !== "clip") {
    throw new AppError(
      "bad_file",
      `${path}: general.architecture: expected a projector, 'clip', got '${String(arch)}'`,
    );
  }
  const keys = keysOf(gguf, "clip");
  if (!keys.flag(`has_${section}_encoder`, false)) {
    const encoder = section === "vision" ? "an encoder of images" : "an encoder of recordings";
    throw new AppError("unsupported", `${path}: 'clip.has_${section}_encoder': expected ${encoder}, got none`);
  }
  const kind = keys.text("projector_type", keys.text(`${section}.projector_type`, ""));
  return {
    path,
    keys,
    section,
    prefix: section === "vision" ? "v" : "a",
    kind: BOTH[kind]?.[section] ?? kind,
    weights: gguf,
    ...tensorsOf(gguf, section === "vision" ? IGNORED : IGNORED_BESIDE_AUDIO),
    ...sizesOf(keys, { path, section }),
    floats: floatsOf(gguf),
  };
}

function sizesOf(keys: Keys, { path, section }: Pick<EncoderModel, "path" | "section">) {
  const count = (key: string, min: number, max: number, fallback?: number): number =>
    keys.count(`${section}.${key}`, { min, max, ...(fallback !== undefined && { fallback }) });
  const nHeads = count("attention.head_count", 0, HEADS_MAX);
  const dim = count("embedding_length", 1, DIM_MAX);
  const nKvHeads = count("attention.head_count_kv", 0, nHeads, nHeads);
  if (nKvHeads > 0 && nHeads % nKvHeads !== 0) {
    const expected = `a divisor of the ${nHeads} heads`;
    throw new AppError(
      "bad_file",
      `${path}: 'clip.${section}.attention.head_count_kv': expected ${expected}, got ${nKvHeads}`,
    );
  }
  const fallback = nHeads > 0 ? Math.floor(dim / nHeads) : 0;
  const eps = keys.number(`${section}.attention.layer_norm_epsilon`);
  if (eps < 0)
    throw new AppError(
      "bad_file",
      `${path}: 'clip.${section}.attention.layer_norm_epsilon': expected 0 or more, got ${eps}`,
    );
  return {
    dim,
    ffnDim: count("feed_forward_length", 0, FFN_DIM_MAX),
    nLayers: count("block_count", 0, LAYERS_MAX),
    nHeads,
    nKvHeads,
    headDim: nHeads > 0 ? count("attention.head_dim", 1, HEAD_DIM_MAX, fallback) : 0,
    eps,
    act: activationOf(keys, path),
  };
}

function activationOf(keys: Keys, path: string): ClipActivation {
  const [gelu, silu] = [keys.flag("use_gelu", false), keys.flag("use_silu", false)];
  if (gelu && silu)
    throw new AppError("bad_file", `${path}: 'clip.use_gelu': expected no 'clip.use_silu' together with it`);
  return gelu ? "gelu" : silu ? "silu" : "gelu_quick";
}

function coloursOf(keys: Keys, path: string, key: string): Rgb {
  const stored = keys.find(`vision.${key}`);
  const values = typeof stored === "object" ? Array.from(stored as ArrayLike<unknown>, Number) : [];
  const [red, green, blue] = values;
  const divides = key === "image_std";
  const isGood = (value: number): boolean => Number.isFinite(value) && !(divides && value === 0);
  if (values.length === 3 && values.every(isGood)) return [red!, green!, blue!];
  const expected = divides ? "three numbers other than 0" : "three numbers";
  throw new AppError("bad_file", `${path}: 'clip.vision.${key}': expected ${expected}, got [${values.join(", ")}]`);
}

/** The text model's width, a dimension (0, or mostly 1) of the projection's tensor. */
export function widthOf(model: EncoderModel, name: string, dimension: 0 | 1 = 1): number {
  const width = model.shape(name)?.[dimension];
  if (width === undefined || width > TEXT_DIM_MAX) {
    const expected = `a matrix to the text model's width, at most ${TEXT_DIM_MAX}`;
    throw new AppError(
      "bad_file",
      `${model.path}: tensor '${name}.weight': expected ${expected}, got ${width ?? "none"}`,
    );
  }
  return width;
}

const floatsOf =
  (gguf: Gguf): EncoderModel["floats"] =>
  (weight, { first, count } = { first: 0, count: weight.outDim * weight.experts }) =>
    unpackRows(gguf, weight, { expert: 0, first, out: new Float32Array(count * weight.inDim) });
