/**
 * Plans every tensor of a model folder: its name and type in the GGUF, or its omission. A tensor without a rule is an
 * error, and so is a layer that lacks a required tensor.
 */
import { AppError } from "../../base/index.ts";
import { bf16, f16, f32, type Quant } from "../../engine/formats/index.ts";
import type { Architecture, TensorRule, TensorTable } from "./architecture.ts";
import type { SafeTensor } from "./safetensors.ts";
import { checkHeads, sourceType, type TensorSource } from "./tensor-data.ts";

/** Encoder parts of multimodal models; the text model is converted without them. */
const ENCODERS =
  /^(vision_tower|vision_model|visual|multi_modal_projector|audio_tower|model\.(vision|visual|audio|multi_modal))/;
/** Tables that some files store although every engine computes them. */
const COMPUTED = /\.rotary_emb\.inv_freq$|\.masked_bias$/;
/** GGML_MAX_DIMS of ggml. */
const DIMS_MAX = 4;

interface PlannedTensor {
  readonly name: string;
  /** GGUF order: the fastest-varying dimension first. */
  readonly shape: readonly number[];
  readonly quant: Quant;
  readonly source: TensorSource;
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
  const planned = new Map<string, PlannedTensor>();
  let encoderCount = 0;
  for (const tensor of tensors) {
    if (ENCODERS.test(tensor.name)) {
      encoderCount++;
      continue;
    }
    const name = bareName(tensor.name);
    const isUnused = COMPUTED.test(name) || architecture.unused?.test(name) || (isTied && name === "lm_head.weight");
    if (isUnused) continue;
    const found = findRule(table, name, nLayers);
    if (!found) {
      const why = `'${architecture.arch}' has no such weight, and without it the answers would be wrong`;
      throw new AppError("unsupported", `${label}: tensor '${tensor.name}': ${why}`);
    }
    if (planned.has(found.name)) {
      throw new AppError("bad_file", `${label}: tensor '${tensor.name}': there is another '${name}'`);
    }
    planned.set(found.name, planTensor(tensor, found, label));
  }
  checkComplete({ planned, table, nLayers, label });
  return { tensors: [...planned.values()].sort(byPlace), encoderCount };
}

/** The name within the text model. */
export function bareName(name: string): string {
  return name.replace(/^(language_model\.)?(model|bert)\.(language_model\.)?/, "").replace(/^language_model\./, "");
}

interface FoundRule {
  readonly name: string;
  readonly rule: TensorRule;
}

/** The rule for a weight and its name in the GGUF; undefined if no rule matches, or the layer does not exist. */
export function findRule(table: TensorTable, name: string, nLayers: number): FoundRule | undefined {
  const part = /\.(weight|bias|gamma|beta)$/.exec(name)?.[1];
  if (part === undefined) return undefined;
  const layer = /^(?:encoder\.)?layers?\.(\d{1,6})\./.exec(name)?.[1];
  if (layer !== undefined && Number(layer) >= nLayers) return undefined;
  const bare = name.slice(0, -part.length - 1);
  const key = layer === undefined ? bare : bare.replace(`.${layer}.`, ".*.");
  const rule = Object.hasOwn(table, key) ? table[key] : undefined;
  if (!rule || rule.to.includes("*") !== (layer !== undefined)) return undefined;
  const suffix = { weight: "weight", gamma: "weight", bias: "bias", beta: "bias" }[part];
  return { name: `${rule.to.replace("*", String(Number(layer)))}.${suffix}`, rule };
}

function planTensor(tensor: SafeTensor, { name, rule }: FoundRule, label: string): PlannedTensor {
  const { shape } = tensor;
  if (shape.length === 0 || shape.length > DIMS_MAX || shape.includes(0)) {
    const expected = `1 … ${DIMS_MAX} dimensions above 0`;
    throw new AppError(
      "bad_file",
      `${label}: tensor '${tensor.name}': expected ${expected}, got (${shape.join(", ")})`,
    );
  }
  const isMatrix = shape.length > 1 && !rule.precise;
  const from = sourceType(tensor, label);
  const quant = !isMatrix ? f32 : from === bf16 ? bf16 : f16;
  const source = {
    tensor,
    pairedHeads: rule.pairedHeads ?? 0,
    shift: name.endsWith(".weight") ? (rule.shift ?? 0) : 0,
  };
  checkHeads(source, label);
  return { name, shape: shape.toReversed(), quant, source };
}

interface Planned {
  readonly planned: ReadonlyMap<string, PlannedTensor>;
  readonly table: TensorTable;
  readonly nLayers: number;
  readonly label: string;
}

/** Required weights must be present in every layer; optional ones and biases in every layer or in none. */
function checkComplete({ planned, table, nLayers, label }: Planned): void {
  const missing = (name: string): AppError =>
    new AppError("bad_file", `${label}: expected a weight for '${name}', got none`);
  for (const { to, optional } of Object.values(table)) {
    const names = to.includes("*") ? Array.from({ length: nLayers }, (_, i) => to.replace("*", String(i))) : [to];
    for (const part of ["weight", "bias"]) {
      const isNeeded = part === "weight" && !optional;
      const absent = names.find((name) => !planned.has(`${name}.${part}`));
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
