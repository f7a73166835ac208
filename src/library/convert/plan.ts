/**
 * Plans every tensor of a model folder: its name and type in the GGUF, or its omission. A tensor without a rule is an
 * error, and so is a layer that lacks a required tensor.
 */
import { AppError } from "../../base/index.ts";
import { bf16, f16, f32, i32, type Quant } from "../../engine/formats/index.ts";
import type { Architecture, RowSelection, TensorRule, TensorTable } from "./architecture.ts";
import { blockScaled, isBlockScaled, isScales, type BlockScaledSource } from "./block-scaled.ts";
import type { SafeTensor } from "./safetensors.ts";
import { isBytes, plannedExperts, type ExpertSource } from "./expert-data.ts";
import { checkFactor, checkHeads, shapeOf, sourceType, type TensorSource } from "./tensor-data.ts";

/** Encoder parts of multimodal models; most text models are converted without them. */
const ENCODERS =
  /^(vision_tower|vision_model|visual|multi_modal_proj|audio_tower|mm_proj|model\.(vision|visual|audio|multi_modal))/;
/** Tables that some files store although every engine computes them. */
const COMPUTED = /\.rotary_emb\.inv_freq$|\.masked_bias$/;
/** GGML_MAX_DIMS of ggml. */
const DIMS_MAX = 4;

interface PlannedTensor {
  readonly name: string;
  /** GGUF order: the fastest-varying dimension first. */
  readonly shape: readonly number[];
  readonly quant: Quant;
  /** The sources in order; several for stacked matrices of experts. */
  readonly sources: readonly (TensorSource | ExpertSource | BlockScaledSource)[];
}

export interface Plan {
  readonly tensors: readonly PlannedTensor[];
  /** Tensors of encoders, which are omitted. */
  readonly encoderCount: number;
}

interface PlanSources {
  readonly tensors: readonly SafeTensor[];
  readonly architecture: Architecture;
  readonly table: TensorTable;
  readonly nLayers: number;
  readonly isTied: boolean;
  readonly label: string;
}

export function planTensors({ tensors, architecture, table, nLayers, isTied, label }: PlanSources): Plan {
  const parts = new Map<string, Map<number, PlannedTensor>>();
  const counts = new Map<string, number>();
  const among = { byName: new Map(tensors.map((tensor) => [tensor.name, tensor])), label };
  const planned = (tensor: SafeTensor, each: FoundRule): PlannedTensor =>
    each.rule.isPacked && isBytes(tensor)
      ? planPacked(tensor, each, among)
      : each.rule.experts
        ? planExperts(tensor, each, among)
        : planTensor(tensor, each, among);
  const leavesOut = !Object.keys(table).some((name) => ENCODERS.test(name));
  const copies = architecture.copies?.map((name) => `${name}.weight`) ?? [];
  const [, ...repeated] = copies.filter((name) => among.byName.has(name));
  let encoderCount = 0;
  for (const tensor of tensors) {
    if (leavesOut && ENCODERS.test(tensor.name)) {
      encoderCount++;
      continue;
    }
    const name = bareName(tensor.name);
    const isUnused =
      COMPUTED.test(name) ||
      architecture.unused?.test(name) ||
      repeated.includes(name) ||
      (isTied && name === "lm_head.weight");
    if (isUnused || isScales(tensor.name, among.byName)) continue;
    const found = findRules(table, name, nLayers);
    if (found.length === 0) {
      const why = `'${architecture.arch}' has no such weight, and without it the answers would be wrong`;
      throw new AppError("unsupported", `${label}: tensor '${tensor.name}': ${why}`);
    }
    for (const each of found) {
      const others = parts.get(each.name) ?? new Map<number, PlannedTensor>();
      parts.set(each.name, others);
      if (each.rule.part) counts.set(each.name, each.rule.part.of);
      if (others.has(each.expert ?? WHOLE)) {
        throw new AppError("bad_file", `${label}: tensor '${tensor.name}': expected one tensor for '${name}', got two`);
      }
      others.set(each.expert ?? WHOLE, planned(tensor, each));
    }
  }
  const all = new Map([...parts].map(([name, each]) => [name, joined(name, each, { label, count: counts.get(name) })]));
  const embedding = all.get("token_embd.weight");
  const lacksOutput = architecture.keepsOutput && !all.has(OUTPUT);
  if (lacksOutput && embedding) all.set(OUTPUT, { ...embedding, name: OUTPUT });
  checkComplete({ planned: all, table, nLayers, label });
  return { tensors: [...all.values()].sort(byPlace), encoderCount };
}

const OUTPUT = "output.weight";
/** The number of a tensor that is not one expert's. */
const WHOLE = -1;

/** Stacks the matrices of experts, or the parts of a tensor, of which there must be `count`. */
function joined(
  name: string,
  parts: ReadonlyMap<number, PlannedTensor>,
  { label, count = parts.size }: { label: string; count: number | undefined },
): PlannedTensor {
  const [first] = parts.values();
  if (parts.has(WHOLE) && parts.size === 1) return first!; // the whole tensor is its only part
  const stack = Array.from({ length: count }, (_, place) => parts.get(place));
  const isLike = (each: PlannedTensor | undefined): boolean =>
    each?.shape.join() === first!.shape.join() && each.quant === first!.quant;
  if (parts.size !== count || !stack.every(isLike)) {
    const expected = `parts 0 … ${count - 1} of one shape and type`;
    throw new AppError("bad_file", `${label}: '${name}': expected ${expected}, got others`);
  }
  return {
    ...first!,
    shape: [...first!.shape, parts.size],
    sources: stack.flatMap((each) => each!.sources),
  };
}

/** Prefixes of the base model's names in a larger model. */
const BASE =
  /^(model\.transformer|model|rwkv|bert|transformer|distilbert\.transformer|distilbert|backbone|gpt_neox|roberta)\./;

/** The name within the text model. */
export function bareName(name: string): string {
  const inner = /^language_model\./;
  return name.replace(inner, "").replace(BASE, "").replace(inner, "");
}

interface FoundRule {
  readonly name: string;
  readonly rule: TensorRule;
  /** Index in a stack: the number of the expert, or of the part. */
  readonly expert: number | undefined;
}

const LAYER =
  /^(?:(?:(?:en|de)coder\.|vision_model\.(?:global_)?transformer\.)?(?:layers?|block)|h|blocks)\.(\d{1,6})\./;
/** Matrices that a GGUF stacks: of experts, or of streams. */
const EXPERT = /(\.experts|^altup_projections|^altup_unembed_projections)\.(\d{1,6})(?=\.|$)/;

/** The rules for a weight, each with its name in the GGUF; empty if no rule matches, or the layer does not exist. */
export function findRules(table: TensorTable, name: string, nLayers: number): FoundRule[] {
  const layer = LAYER.exec(name)?.[1];
  const inLayers = (own: string): string => (layer === undefined ? own : own.replace(`.${layer}.`, ".*."));
  const isNamed = Object.hasOwn(table, name) || Object.hasOwn(table, inLayers(name));
  const part = isNamed ? undefined : /\.(weight|bias|gamma|beta)$/.exec(name)?.[1]; // a name without one is whole
  const bare = part === undefined ? name : name.slice(0, -part.length - 1);
  const expert = EXPERT.exec(name)?.[2];
  const exact = bare.replace(EXPERT, "$1.#");
  const isExact = layer !== undefined && Object.hasOwn(table, exact);
  const key = isExact ? exact : inLayers(exact);
  const rules = [Object.hasOwn(table, key) ? table[key]! : []].flat();
  const suffix = part === undefined ? "" : part === "bias" || part === "beta" ? ".bias" : ".weight";
  return rules
    .filter(({ to }) => to.includes("*") === (layer !== undefined && !isExact))
    .filter(({ layers = nLayers }) => layer === undefined || Number(layer) < layers)
    .map((rule) => ({
      name: rule.to.replace("*", String(Number(layer))) + suffix,
      rule,
      expert: rule.part?.at ?? (expert === undefined ? undefined : Number(expert)),
    }));
}

interface Among {
  readonly byName: ReadonlyMap<string, SafeTensor>;
  readonly label: string;
}

/** A tensor that is needed to read another one, such as its scales. */
function companionOf(tensor: SafeTensor, name: string, { byName, label }: Among, what: string): SafeTensor {
  const found = byName.get(name);
  if (found) return found;
  throw new AppError("bad_file", `${label}: tensor '${tensor.name}': expected ${what} in '${name}', got none`);
}

function planTensor(tensor: SafeTensor, { name, rule }: FoundRule, among: Among): PlannedTensor {
  const { label } = among;
  const isWeight = !name.endsWith(".bias");
  const wrong = (expected: string): AppError =>
    new AppError(
      "bad_file",
      `${label}: tensor '${tensor.name}': expected ${expected}, got (${tensor.shape.join(", ")})`,
    );
  if (tensor.shape.length === 0 || tensor.shape.includes(0)) throw wrong("1 or more dimensions above 0");
  if (rule.isTable) return planTable(tensor, name, label);
  if (isBlockScaled(tensor)) return planBlockScaled(tensor, { name, rule }, among);
  const { shift = 0 } = rule;
  const rows = rule.rows && selectedRows(tensor, rule.rows);
  if (rule.rows && !rows) throw wrong("rows that its configuration divides");
  const source = {
    tensor,
    pairedHeads: rule.pairedHeads ?? 0,
    isTransposed: isWeight && (rule.isTransposed ?? false),
    groups: rule.groups,
    rows,
    factor: rule.times && companionOf(tensor, rule.times(tensor.name), among, "factors"),
    value: rule.value ?? (isWeight && shift !== 0 ? (weight: number) => weight + shift : undefined),
  };
  const shape = shapeOf(source);
  if (shape.length > DIMS_MAX) throw wrong(`at most ${DIMS_MAX} dimensions`);
  const isMatrix = shape.length > 1 && !rule.precise;
  const from = sourceType(tensor, label);
  const quant = !isMatrix ? f32 : from === bf16 ? bf16 : f16;
  checkHeads(source, label);
  checkFactor(source, label);
  return { name, shape: shape.toReversed(), quant, sources: [source] };
}

/** Whole numbers; see `TensorRule.isTable`. */
function planTable(tensor: SafeTensor, name: string, label: string): PlannedTensor {
  const { shape, dtype } = tensor;
  if (!["I32", "I64"].includes(dtype))
    throw new AppError("bad_file", `${label}: tensor '${tensor.name}': expected I32 or I64, got ${dtype}`);
  return { name, shape: shape.toReversed(), quant: i32, sources: [{ tensor, pairedHeads: 0 }] };
}

/** A matrix in 8 bits. Throws `unsupported` if a rule changes it. */
function planBlockScaled(
  tensor: SafeTensor,
  { name, rule }: Pick<FoundRule, "name" | "rule">,
  among: Among,
): PlannedTensor {
  if (rule.rows ?? rule.pairedHeads ?? rule.isTransposed ?? rule.value ?? rule.times) {
    const what = "this architecture reorders or changes it, which works for F32, F16, BF16 only";
    throw new AppError("unsupported", `${among.label}: tensor '${tensor.name}': ${what}, got ${tensor.dtype}`);
  }
  return { name, shape: tensor.shape.toReversed(), quant: bf16, sources: [blockScaled(tensor, among)] };
}

/** Stacked experts; see `TensorRule.experts`. */
function planExperts(tensor: SafeTensor, { name, rule }: FoundRule, among: Among): PlannedTensor {
  const { label } = among;
  const isPacked = tensor.name.endsWith("_blocks");
  const scaleName = tensor.name.replace(/_blocks$/, "_scales");
  const scales = isPacked ? companionOf(tensor, scaleName, among, "scales") : undefined;
  const source = { tensor, scales, rows: rule.experts! }; // the caller checked `experts`
  const { shape, quant } = plannedExperts(source, label);
  const plain = (): Quant => (sourceType(tensor, label) === bf16 ? bf16 : f16);
  return { name, shape: shape.toReversed(), quant: quant ?? plain(), sources: [source] };
}

/** The matrix of one expert; see `TensorRule.isPacked`. */
function planPacked(tensor: SafeTensor, { name }: FoundRule, among: Among): PlannedTensor {
  const scaleName = tensor.name.replace(/_packed$/, "_scale").replace(/\.weight$/, ".scale");
  const scales = companionOf(tensor, scaleName, among, "scales");
  const source = {
    tensor: { ...tensor, shape: packedShape(tensor.shape) },
    scales: { ...scales, shape: [1, ...scales.shape] },
    rows: { first: 0, step: 1 },
  };
  const { shape, quant = f16 } = plannedExperts(source, among.label);
  return { name, shape: shape.slice(1).toReversed(), quant, sources: [source] };
}

/** (rows, bytes) as (1, rows, blocks, 16). */
const packedShape = ([rows = 0, bytes = 0, ...more]: readonly number[]): number[] => [
  1,
  rows,
  ...(bytes % 16 === 0 ? [bytes / 16, 16] : [bytes]),
  ...more,
];

/** Four times the most of any published model: 512 experts of 2 · 2,048 rows. */
const ROWS_MAX = 2 ** 23;

/** The rows that a rule selects of a tensor; undefined if they do not fit the configuration, or are too many. */
function selectedRows({ shape }: SafeTensor, select: NonNullable<TensorRule["rows"]>): RowSelection | undefined {
  const product = (sizes: readonly number[]): number => sizes.reduce((all, size) => all * size, 1);
  const lastDim = shape.length > 1 ? shape.at(-1)! : 1; // a vector has rows of one value
  if (product(shape) / lastDim > ROWS_MAX) return undefined;
  const rows = select(shape);
  const { order, rowLen = lastDim } = rows;
  const isSize = (size: number): boolean => Number.isInteger(size) && size > 0;
  if (!rows.shape.every(isSize) || !isSize(rowLen)) return undefined;
  if (!order) return product(rows.shape) === product(shape) ? rows : undefined;
  const count = product(shape) / rowLen;
  const isPlace = (row: number): boolean => Number.isInteger(row) && row >= 0 && row < count;
  return order.length * rowLen === product(rows.shape) && order.every(isPlace) ? rows : undefined;
}

interface Planned {
  /** By name in the GGUF. */
  readonly planned: ReadonlyMap<string, unknown>;
  readonly table: TensorTable;
  readonly nLayers: number;
  readonly label: string;
}

/**
 * Required weights must be present in every layer; optional ones and biases in every layer or in none. Otherwise throws
 * `bad_file`.
 */
export function checkComplete({ planned, table, nLayers, label }: Planned): void {
  const missing = (name: string): AppError =>
    new AppError("bad_file", `${label}: expected a weight for '${name}', got none`);
  for (const { to, optional, layers = nLayers } of Object.values(table).flat()) {
    if (optional === "layers") continue;
    const names = to.includes("*") ? Array.from({ length: layers }, (_, i) => to.replace("*", String(i))) : [to];
    for (const part of ["weight", "bias"]) {
      const isNeeded = part === "weight" && !optional;
      const absent = names.find((name) => !planned.has(`${name}.${part}`) && !planned.has(name));
      const isSomewhere = names.some((name) => planned.has(`${name}.${part}`));
      if (absent !== undefined && (isNeeded || isSomewhere)) throw missing(`${absent}.${part}`);
    }
  }
}

/** Sorts layers in order, tensors outside layers before them, and output tensors last. */
function byPlace(a: PlannedTensor, b: PlannedTensor): number {
  const placeOf = ({ name }: PlannedTensor): number => {
    const layer = /^blk\.(\d+)\./.exec(name)?.[1];
    return layer === undefined ? (name.startsWith("output") ? Infinity : -1) : Number(layer);
  };
  const [first, second] = [placeOf(a), placeOf(b)];
  return first === second ? (a.name < b.name ? -1 : 1) : first - second;
}
