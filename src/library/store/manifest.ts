/**
 * Manifests: the list of blobs that make up a model. One JSON file per name, in the layout of OCI image manifests,
 * which other servers and registries read and write too.
 */
import { readFile, stat } from "node:fs/promises";
import { AppError, isObject } from "../../base/index.ts";
import { digestOf, hexOf, parseDigest, type Digest } from "./digest.ts";
import { writeBytes, writeDurably } from "../../base/system.ts";

export const MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json";
export const CONFIG_TYPE = "application/vnd.docker.container.image.v1+json";

/** The content of a layer; the media type is `application/vnd.ollama.image.<kind>`. */
export type LayerKind =
  "model" | "projector" | "adapter" | "draft" | "template" | "system" | "params" | "messages" | "license";
const TYPE_PREFIX = "application/vnd.ollama.image.";

export const MANIFEST_BYTES_MAX = 4 * 1024 * 1024; // the largest known, with a layer per tensor, is under 1 MB
const LAYERS_MAX = 8192;

export interface Layer {
  readonly mediaType: string;
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
  /** The model or path that the layer came from. */
  readonly from?: string;
  /** For one of several files of a model: its name in their folder, with slashes. */
  readonly name?: string;
}

export interface Manifest {
  readonly config: Layer;
  readonly layers: readonly Layer[];
}

/** A manifest as it lies on disk. */
interface StoredManifest extends Manifest {
  /** Hex SHA-256 of the file's bytes: the digest that identifies the model. */
  readonly digest: string;
}

export const mediaType = (kind: LayerKind): string => TYPE_PREFIX + kind;

/** The layers of one kind, in order. */
export function layersOf(layers: readonly Layer[], kind: LayerKind): readonly Layer[] {
  const alias = kind === "template" ? `${TYPE_PREFIX}prompt` : undefined; // the old name of templates
  return layers.filter((layer) => layer.mediaType === mediaType(kind) || layer.mediaType === alias);
}

/** Layers and configuration, each digest once. */
export function blobsOf({ layers, config }: Manifest): Layer[] {
  return [...new Map([...layers, config].map((layer) => [layer.digest, layer])).values()];
}

/** Bytes of all layers and the configuration together. */
export function manifestBytes({ config, layers }: Manifest): number {
  return layers.reduce((sum, layer) => sum + layer.size, config.size);
}

/** Throws `bad_file` naming file and field. */
export function parseManifest(bytes: Uint8Array, path: string): StoredManifest {
  checkSize(bytes.length, path);
  const root = parseJsonObject(new TextDecoder().decode(bytes), path);
  const { manifests } = root;
  if (root["config"] === undefined && Array.isArray(manifests)) {
    const found = `an index of ${manifests.length} manifests`;
    throw new AppError("bad_file", `${path}: expected the manifest of one model, got ${found}`);
  }
  const layers = root["layers"] ?? [];
  if (!Array.isArray(layers) || layers.length > LAYERS_MAX) {
    throw bad(path, "layers", `an array of at most ${LAYERS_MAX}`, layers);
  }
  return {
    config: parseLayer(root["config"], { path, field: "config" }),
    layers: layers.map((layer, i) => parseLayer(layer, { path, field: `layers[${i}]` })),
    digest: hexOf(digestOf(bytes)),
  };
}

/** A JSON value, or `bad_file` naming the file. */
export function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AppError("bad_file", `${path}: not JSON`, { cause: error });
  }
}

/** A JSON object, or `bad_file` naming the file. */
export function parseJsonObject(text: string, path: string): Record<string, unknown> {
  const value = parseJson(text, path);
  if (!isObject(value)) throw bad(path, "root", "an object", value);
  return value;
}

/** Throws `bad_file`, and the `node:fs` error for a missing file. */
export async function readManifest(path: string): Promise<StoredManifest> {
  return parseManifest(await readManifestBytes(path), path);
}

/** The file's bytes. Never opens special files, which may block; throws as `readManifest`. */
export async function readManifestBytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const found = await stat(path);
  if (!found.isFile() && !found.isDirectory()) throw bad(path, "root", "a file", "something else");
  checkSize(found.size, path);
  return readFile(path);
}

/** Replaces the manifest at `path` atomically. */
export async function writeManifest(path: string, manifest: Manifest): Promise<void> {
  await writeDurably(path, (temporary) => writeBytes(temporary, encodeManifest(manifest)));
}

/** The bytes that `writeManifest` writes. */
export function encodeManifest({ config, layers }: Manifest): Uint8Array {
  return new TextEncoder().encode(
    `${JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST_TYPE, config, layers })}\n`,
  );
}

function checkSize(bytes: number, path: string): void {
  if (bytes > MANIFEST_BYTES_MAX) throw bad(path, "size", `at most ${MANIFEST_BYTES_MAX} bytes`, bytes);
}

function parseLayer(value: unknown, at: { path: string; field: string }): Layer {
  if (!isObject(value)) throw bad(at.path, at.field, "an object", value);
  const { mediaType, digest, size, from, name } = value;
  if (typeof mediaType !== "string") throw bad(at.path, `${at.field}.mediaType`, "a string", mediaType);
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) {
    throw bad(at.path, `${at.field}.size`, "a number of bytes", size);
  }
  return {
    mediaType,
    digest: parseLayerDigest(digest, at),
    size,
    ...(typeof from === "string" ? { from } : {}),
    ...(typeof name === "string" ? { name } : {}),
  };
}

function parseLayerDigest(value: unknown, at: { path: string; field: string }): Digest {
  try {
    return parseDigest(String(value));
  } catch {
    throw bad(at.path, `${at.field}.digest`, "sha256:<64 hex digits>", value);
  }
}

function bad(path: string, field: string, expected: string, found: unknown): AppError {
  const shown = JSON.stringify(found)?.slice(0, 80) ?? "nothing";
  return new AppError("bad_file", `${path}: ${field}: expected ${expected}, got ${shown}`);
}
