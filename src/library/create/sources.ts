/**
 * The GGUF files of a new model: inspects each and turns it into one blob. Parts of a split model are joined, because
 * blobs have no names by which the other parts could be found.
 */
import { openSync, readSync, closeSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf } from "../../base/index.ts";
import { getNumber, getString, getStrings, type Header, mergeShards, readPart } from "../../engine/formats/index.ts";
import { type ChatFormat, findChatFormat, parseJinja, stopsFor } from "../../engine/text/index.ts";
import { WHISPER_CPP, type ModelFolder } from "../convert/folder.ts";
import { isWhisperCpp } from "../convert/whisper-cpp-file.ts";
import { blobPath, findBlob, importBlob, receiveBlob, touchBlob, type Blob } from "../store/blobs.ts";
import type { Claims } from "../store/claims.ts";
import { describeBlob } from "../store/describe-blob.ts";
import { describeGguf, type GgufDetails } from "../store/details.ts";
import { blobName, type Digest } from "../store/digest.ts";

/** A file that a request names. */
export interface Source {
  /** The request's name for it, for messages. */
  readonly label: string;
  readonly path: string;
  /** Set if it is a blob already. */
  readonly digest?: Digest;
  /** The blob was made for this request. */
  readonly isNew?: boolean;
}

/** The content of a GGUF. */
type SourceKind = "model" | "projector" | "adapter" | "draft";

export interface InspectedSource extends Source {
  readonly kind: SourceKind;
  readonly details: GgufDetails;
  /** The format of its chat template, if known. */
  readonly format?: ChatFormat;
  /** True if it has a chat template. */
  readonly hasTemplate: boolean;
  /** The error, if that template does not parse. */
  readonly templateError?: string;
  /** Its place in a split model, from 0. */
  readonly part?: { readonly index: number; readonly count: number };
}

/** A file in the store. */
export interface StoredSource {
  readonly kind: SourceKind;
  readonly details: GgufDetails;
  readonly blob: Blob;
  /** It became a blob just now: from a local file, or by joining parts. */
  readonly isNew: boolean;
  /** The model that it was taken from. */
  readonly from?: string;
}

export const blobSource = (root: string, { label, digest }: { label: string; digest: Digest }): Source => ({
  label,
  path: blobPath(root, digest),
  digest,
});

interface ModelParts {
  readonly sources: readonly Source[];
  readonly folder?: ModelFolder;
}

/** A file of whisper.cpp among the sources becomes the folder. Throws `bad_request` if there are several models. */
export async function takeWhisper(given: ModelParts): Promise<ModelParts> {
  const { sources, folder } = given;
  const found = await Promise.all(sources.map(({ path }) => isWhisperCpp(path)));
  const files = sources.filter((_, i) => found[i]);
  const [file] = files;
  if (!file) return given;
  const labels = [...files, ...(folder ? [folder] : [])].map(({ label }) => `'${label}'`);
  if (labels.length > 1) throw new AppError("bad_request", `expected one model, got ${labels.join(" and ")}`);
  const { label, path } = file;
  return { sources: sources.filter((_, i) => !found[i]), folder: { label, files: new Map([[WHISPER_CPP, path]]) } };
}

/**
 * Throws `bad_request` if the file is not a GGUF or is damaged, `unsupported` for models that we cannot serve, and
 * `bad_file` if the file does not exist.
 */
export async function inspectSource(source: Source): Promise<InspectedSource> {
  checkMagic(source);
  const header = await readSound(source);
  try {
    const found = tellFrom(header);
    return { ...source, ...found, ...(found.format ? { format: await fitted(found.format, source) } : {}) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError("bad_request", `${source.label}: ${error.message}`, { cause: error });
  }
}

/** Throws `bad_file` if a key has a wrong type. */
function tellFrom({ metadata, tensors }: Header): Omit<InspectedSource, keyof Source> {
  const type = getString(metadata, "general.type", "model");
  const details = describeGguf({ metadata, tensors });
  const { family } = details;
  const isEncoder = metadata.has(`${family}.vision.block_count`) && !metadata.has(`${family}.block_count`); // Ollama's
  const projects = type === "projector" || type === "mmproj" || family === "clip" || isEncoder;
  const kind = type === "adapter" ? "adapter" : projects ? "projector" : "model";
  const count = getNumber(metadata, "split.count", 0);
  const part = count > 1 ? { part: { index: getNumber(metadata, "split.no", 0), count } } : {};
  const template = getString(metadata, "tokenizer.chat_template", "");
  const format = findChatFormat(template);
  const templateError = template === "" ? undefined : parseFailure(template);
  const found = { ...(format ? { format } : {}), ...(templateError === undefined ? {} : { templateError }) };
  return { kind, details, hasTemplate: template !== "", ...part, ...found };
}

/** The format, limited to stop strings that are in the file's vocabulary. */
async function fitted(format: ChatFormat, { path }: Source): Promise<ChatFormat> {
  if (format.eos === undefined) return format;
  const arrayItemsMax = (key: string): number => (key === "tokenizer.ggml.tokens" ? Infinity : 0);
  const { metadata } = (await readPart(path, { shard: 0, arrayItemsMax })).header;
  const tokens = getStrings(metadata, "tokenizer.ggml.tokens", []);
  const eos = tokens[getNumber(metadata, "tokenizer.ggml.eos_token_id", 2)]; // SentencePiece's id, if not set
  return { ...format, stop: stopsFor(format, eos) };
}

function parseFailure(template: string): string | undefined {
  try {
    parseJinja(template);
    return undefined;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.message;
  }
}

function checkMagic({ label, path, digest }: Source): void {
  const bytes = Buffer.alloc(64);
  let start = "";
  try {
    const fd = openSync(path, "r");
    try {
      start = bytes.toString("latin1", 0, readSync(fd, bytes, 0, bytes.length, 0));
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    const what = digest ? `no such file: blob ${digest} was not uploaded` : messageOf(error);
    throw new AppError("bad_file", `${label}: ${what}`, { cause: error });
  }
  if (start.startsWith("GGUF")) return;
  const kind = kindOfStart(start);
  if (kind !== undefined) throw new AppError("bad_request", `${label}: expected a GGUF file, got ${kind}`);
  const other = /\.(?!gguf$)[a-z0-9]+$/i.test(label);
  throw new AppError("bad_request", other ? "unknown type" : "supplied file was not in GGUF format"); // Ollama's words
}

/** Names a usual mistake: a file that stands in place of the weights. */
function kindOfStart(start: string): string | undefined {
  if (start === "") return "an empty file";
  if (start.startsWith("version https://git-lfs")) return "a pointer of Git LFS: 'git lfs pull' fetches the file";
  return /^\s*<(!doctype|html|\?xml)/i.test(start) ? "a web page" : undefined;
}

/** A damaged file is an error of the request that sent it. */
async function readSound({ label, path }: Source): Promise<Header> {
  try {
    return (await readPart(path, { shard: 0, arrayItemsMax: 0 })).header;
  } catch (error) {
    throw labelled(error, { path, label });
  }
}

/** A failure to read a request's file, under the request's name for it. */
export function labelled(error: unknown, { path, label }: { path: string; label: string }): unknown {
  if (!(error instanceof AppError)) return error;
  const isFault = !["unsupported", "storage", "cancelled"].includes(error.code);
  return new AppError(isFault ? "bad_request" : error.code, error.message.replace(path, label), { cause: error });
}

/** Puts the files into the store: the parts of a split model as one blob. Throws `bad_request` if one is missing. */
export async function storeSources(
  root: string,
  sources: readonly InspectedSource[],
  claims: Claims,
): Promise<StoredSource[]> {
  const before = new Set(await readdir(join(root, "blobs")).catch(() => []));
  const claimed = (blob: Blob): { blob: Blob; isNew: boolean } => {
    const isNew = !before.has(blobName(blob.digest));
    claims.add(blob.digest, isNew);
    return { blob, isNew };
  };
  const stored: StoredSource[] = [];
  for (const source of sources.filter((one) => !one.part)) {
    const { kind, details } = source;
    const { blob, isNew } = claimed(await storeWhole(root, source));
    stored.push({ kind, details, blob, isNew: source.isNew || isNew });
  }
  const parts = sources.filter((one) => one.part);
  if (parts.length === 0) return stored;
  const { kind } = parts[0]!; // at least one
  const whole = claimed(await storeParts(root, parts));
  return [...stored, { kind, details: await describeBlob(root, whole.blob.digest), ...whole }];
}

async function storeWhole(root: string, { label, path, digest }: Source): Promise<Blob> {
  if (digest === undefined) return importBlob(root, path);
  await touchBlob(root, digest);
  const size = await findBlob(root, digest);
  if (size === undefined) throw new AppError("bad_file", `${label}: no such file: blob ${digest} is gone`);
  return { digest, size };
}

async function storeParts(root: string, parts: readonly InspectedSource[]): Promise<Blob> {
  return receiveBlob(root, { chunks: mergeShards(sortParts(parts).map(({ path }) => path)) });
}

/** The parts of a split model in order. Throws `bad_request` unless each part occurs exactly once. */
export function sortParts<T extends InspectedSource>(sources: readonly T[]): T[] {
  const parts = sources.toSorted((a, b) => (a.part?.index ?? 0) - (b.part?.index ?? 0));
  const count = parts[0]?.part?.count ?? 0;
  for (const [i, { part: own, label }] of parts.entries()) {
    if (own?.index === i && own.count === count) continue;
    const found = `part ${(own?.index ?? 0) + 1} of ${own?.count}`;
    throw new AppError("bad_request", `${label}: expected part ${i + 1} of ${count} of a split model, got ${found}`);
  }
  if (parts.length !== count) {
    throw new AppError("bad_request", `expected all ${count} parts of a split model, got ${parts.length}`);
  }
  return parts;
}
