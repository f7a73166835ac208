/** Recognises the model in some files: its parts, an optional projector for images, and a name. */
import type { Words } from "../words/index.ts";

export interface ModelPlan {
  /** Derived from a file's name; the user may change it. */
  readonly name: string;
  /** In order. */
  readonly files: readonly File[];
  /** The projector, which encodes images. */
  readonly projector: File | undefined;
}

export const isModelFile = ({ name }: File): boolean => /\.gguf$/i.test(name);

/** Bytes that contain a header's first keys. */
const HEAD_BYTES = 4096;
const MAGIC = [0x47, 0x47, 0x55, 0x46]; // GGUF
const PART = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;
const PARTS_MAX = 1024;
const NAMED_MAX = 4;
/** The suffix of a name that gives the weights' type. */
const TYPE = /[-_.]((?:i?q\d|bf16|f16|f32|fp16|tq\d|mxfp4)[a-z0-9_]*)$/i;

/** True if a file begins with GGUF's magic. */
export async function hasMagic(file: Blob): Promise<boolean> {
  const head = new Uint8Array(await file.slice(0, MAGIC.length).arrayBuffer());
  return MAGIC.every((byte, i) => head[i] === byte);
}

/** Throws the problem of the files, in words for the user. */
export async function planOf(files: readonly File[], words: Words["modelFiles"]): Promise<ModelPlan> {
  const heads = await Promise.all(files.map(async (file) => ({ file, head: await headOf(file, words) })));
  const projectors = heads.filter(({ file, head }) => isProjector(file, head)).map(({ file }) => file);
  const weights = files.filter((file) => !projectors.includes(file)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (weights.length === 0) throw new Error(words.onlyImages);
  const part = PART.exec(weights[0]!.name);
  if (projectors.length > 1 || (!part && weights.length > 1)) throw new Error(words.several);
  if (part) checkParts(part, weights, words);
  return {
    name: nameOf(part ? part[1]! : weights[0]!.name),
    files: [...weights, ...projectors],
    projector: projectors[0],
  };
}

async function headOf(file: File, words: Words["modelFiles"]): Promise<string> {
  if (file.size === 0) throw new Error(words.empty(file.name));
  const isGguf = await hasMagic(file).catch(() => {
    throw new Error(words.unreadable(file.name));
  });
  if (!isGguf) throw new Error(words.notGguf(file.name));
  return new TextDecoder("latin1").decode(await file.slice(0, HEAD_BYTES).arrayBuffer());
}

/** Decides by its first keys, else by its name. */
function isProjector({ name }: File, head: string): boolean {
  if (startsWith(head, "general.type", "mmproj")) return true;
  if (head.includes("general.architecture")) return startsWith(head, "general.architecture", "clip");
  return /mmproj/i.test(name);
}

function startsWith(head: string, key: string, value: string): boolean {
  const at = head.indexOf(key);
  return at >= 0 && head.startsWith(value, at + key.length + 4 + 8); // after its type and its length
}

function checkParts([, base, , count]: RegExpExecArray, weights: readonly File[], words: Words["modelFiles"]): void {
  const all = Math.min(Number(count), PARTS_MAX);
  const expected = Array.from({ length: all }, (_, i) => `${base}-${String(i + 1).padStart(5, "0")}-of-${count}.gguf`);
  const have = new Set(weights.map(({ name }) => name.toLowerCase()));
  const missing = expected.filter((name) => !have.has(name.toLowerCase()));
  if (weights.length > expected.length - missing.length) throw new Error(words.several);
  if (missing.length === 0) return;
  const named = missing.slice(0, NAMED_MAX).join(", ");
  throw new Error(words.missing(missing.length, missing.length > NAMED_MAX ? `${named}, …` : named));
}

/** `Qwen3-4B-Q4_K_M.gguf` → `qwen3-4b:q4_k_m`. */
export function nameOf(file: string): string {
  const base = file.replace(/\.gguf$/i, "");
  const type = TYPE.exec(base);
  const model = clean(type ? base.slice(0, type.index) : base);
  return type && model !== "" ? `${model}:${clean(type[1]!)}` : model || "model";
}

const clean = (text: string): string =>
  text
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[-._]+|[-._]+$/g, "")
    .slice(0, 80);
