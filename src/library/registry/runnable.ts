/**
 * Checks that a registry's model can run here before its first large blob is downloaded: by the manifest, by the small
 * configuration, and if needed by the header of the weights, which is read over the network alone.
 */
import { AppError, checkNotCancelled } from "../../base/index.ts";
import { headerSteps, makeCursor, MAX_HEADER_BYTES, moveWindow } from "../../engine/formats/index.ts";
import { architectureOf, unsupportedText, HEADER_ARRAY_ITEMS_MAX, type Runs } from "../create/architecture.ts";
import { layersOf, parseJsonObject, type Layer, type Manifest } from "../store/manifest.ts";
import { displayName } from "../store/name.ts";
import { isSafetensors, safetensorsText } from "../store/safetensors.ts";
import { CONFIG_BYTES_MAX } from "../store/store.ts";
import { repositoryUrl } from "./address.ts";
import { makeBlobSource, type BlobSource } from "./blob-source.ts";
import type { RegistryClient } from "./client.ts";
import { Transient } from "./retry.ts";
import { StallWatch } from "./stall-watch.ts";

/** Smaller blobs are downloaded rather than probed. */
const LARGE_BYTES = 4 * 1024 * 1024;
/** Bytes of a header per request; the vocabulary takes some megabytes. */
const PIECE_BYTES = 1024 * 1024;

/** Media types of container images, which registries hold besides models. */
const CONTAINER_LAYER = /^application\/vnd\.(docker\.image\.rootfs|oci\.image\.layer)\./;

/** Throws `unsupported` if the model cannot run here, with advice if known. */
export async function checkRunnable(
  client: RegistryClient,
  { manifest, missing, runs }: { manifest: Manifest; missing: readonly Layer[]; runs: Runs | undefined },
): Promise<void> {
  const { name } = client.address;
  const what = `model '${displayName(name)}'`;
  checkKind(manifest, displayName(name));
  if (isSafetensors({ layers: manifest.layers })) throw new AppError("unsupported", safetensorsText(what, name));
  const [weights] = layersOf(missing, "model").filter(({ size }) => size >= LARGE_BYTES);
  if (!weights) return;
  const config = await fetchConfig(client, manifest.config);
  const { model_format: format, model_family: family } = config;
  if (format === "safetensors") throw new AppError("unsupported", safetensorsText(what, name));
  if (!runs || (typeof family === "string" && (await runs(family)))) return;
  const architecture = await remoteArchitecture(client, weights);
  if (architecture !== undefined && !(await runs(architecture))) {
    throw new AppError("unsupported", unsupportedText(what, architecture));
  }
}

function checkKind({ layers }: Manifest, name: string): void {
  const [first] = layers;
  if (!first || !layers.every(({ mediaType }) => CONTAINER_LAYER.test(mediaType))) return;
  const text = `'${name}' is not a model but a container image: its layers are of the type '${first.mediaType.slice(0, 100)}'`;
  throw new AppError("unsupported", text);
}

/** The fields of the configuration; empty if it is not a JSON object, which loading reports. */
async function fetchConfig(client: RegistryClient, { digest, size }: Layer): Promise<Record<string, unknown>> {
  const { body } = await client.exchange(
    { method: "GET", url: repositoryUrl(client.address, `blobs/${digest}`) },
    { what: `blob ${digest}`, bytesMax: Math.min(size, CONFIG_BYTES_MAX) },
  );
  try {
    return parseJsonObject(new TextDecoder().decode(body), "config");
  } catch {
    return {};
  }
}

/** Undefined if the header cannot be read: the download reports why. */
async function remoteArchitecture(client: RegistryClient, blob: Layer): Promise<string | undefined> {
  const source = makeBlobSource(client, blob);
  try {
    const end = Math.min(blob.size, MAX_HEADER_BYTES);
    const cursor = makeCursor(new Uint8Array(0), blob.digest, end);
    const steps = headerSteps(cursor, { fileBytes: blob.size, shard: 0, arrayItemsMax: HEADER_ARRAY_ITEMS_MAX });
    for (;;) {
      const step = steps.next();
      if (step.done) return architectureOf({ ...step.value, path: blob.digest, fileBytes: blob.size });
      const to = Math.min(cursor.at + Math.max(step.value, PIECE_BYTES), end);
      moveWindow(cursor, await readRange(client, source, { from: cursor.at, to }));
    }
  } catch (error) {
    checkNotCancelled(client.signal);
    if (error instanceof AppError || error instanceof Transient) return undefined;
    throw error;
  }
}

/** The bytes of a blob in [from, to). */
async function readRange(
  client: RegistryClient,
  source: BlobSource,
  { from, to }: { from: number; to: number },
): Promise<Uint8Array> {
  using watch = new StallWatch({ stallMs: client.limits.stallMs, wanted: client.signal });
  const { kind, body } = await source.open({ from, to }, watch);
  if (kind === "whole" && from > 0) throw new Transient("ranges are not served");
  const bytes = new Uint8Array(to - from);
  let length = 0;
  try {
    for await (const chunk of body) {
      watch.moved();
      bytes.set(chunk.subarray(0, bytes.length - length), length);
      length += chunk.length;
      if (length >= bytes.length) return bytes;
    }
  } catch (error) {
    throw watch.translate(error, source.host);
  }
  throw new Transient(`expected ${bytes.length} bytes, got ${length}`);
}
