/**
 * Finds a model in a folder: weights of one format, with the JSON, template and tokenizer beside them. Refuses symbolic
 * links that lead out of the folder, except in Hugging Face's cache, which consists of them.
 */
import { glob, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, resolve, sep } from "node:path";

export interface ModelFile {
  readonly path: string;
  /** Relative to the folder, with slashes. */
  readonly name: string;
}

/** The first of these in a folder are its weights. */
const WEIGHTS = [
  ["model*.safetensors", "*/model*.safetensors"],
  ["consolidated*.safetensors"],
  ["adapter*.safetensors"],
  ["onnx/*.onnx*", "*.onnx*"],
  ["mlc-chat-config.json", "params_shard_*.bin", "*.wasm"],
  ["*.gguf"],
];
const BESIDE = [
  "*.json",
  "*/*.json",
  "chat_template.jinja",
  "tokenizer.model",
  "tiktoken.model",
  "merges.txt",
  "rwkv_vocab_*.txt",
];

/** A model in Hugging Face's cache: the files of a snapshot are links to `blobs` beside all snapshots. */
const CACHED = /^(.*[\\/]models--[^\\/]+)[\\/]snapshots[\\/][^\\/]+$/;

/** Throws if the folder holds no weights, or a link leads out of it. */
export async function modelFiles(folder: string): Promise<readonly ModelFile[]> {
  for (const patterns of WEIGHTS) {
    const weights = await matching(folder, patterns);
    if (weights.length === 0) continue;
    const isGguf = patterns[0] === "*.gguf";
    const names = [...weights, ...(isGguf ? [] : await matching(folder, BESIDE))];
    return Promise.all([...new Set(names)].map((name) => insideOf(folder, name)));
  }
  throw new Error(`no Modelfile or safetensors files found in '${folder}'`);
}

async function matching(folder: string, patterns: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const pattern of patterns) for await (const name of glob(pattern, { cwd: folder })) found.add(name);
  return [...found].toSorted();
}

async function insideOf(folder: string, name: string): Promise<ModelFile> {
  const path = await realpath(join(folder, name));
  const root = await realpath(folder);
  const cached = CACHED.exec(root)?.[1];
  if (!path.startsWith(root + sep) && !(cached && path.startsWith(join(cached, "blobs") + sep))) {
    throw new Error(`insecure path: ${name} leads out of '${folder}'; copy the files to a separate folder`);
  }
  return { path, name: name.replaceAll(sep, "/") };
}

/** A path of a Modelfile, relative to its folder; `~` is the home folder. */
export function resolvePath(value: string, folder: string): string {
  if (/^~($|[\\/])/.test(value)) return join(homedir(), value.slice(1));
  return isAbsolute(value) ? value : resolve(folder, value);
}
