/** A store with a registry client of short patience, and models on a registry to pull. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Progress } from "../../../src/library/create/creation.ts";
import { makeLibrary } from "../../../src/library/create/library.ts";
import { CONFIG_TYPE, mediaType } from "../../../src/library/store/manifest.ts";
import { parseAddress } from "../../../src/library/registry/address.ts";
import { ensureKey } from "../../../src/library/registry/key.ts";
import { makeRegistry } from "../../../src/library/registry/registry.ts";
import { LIMITS, type Limits } from "../../../src/library/registry/retry.ts";
import { silent } from "../creating.ts";
import { tempFolder } from "../fixture.ts";
import type { Front } from "./front.ts";

export const KB = 1024;

export interface Place {
  readonly root: string;
  readonly home: string;
  pull(name: string, signal?: AbortSignal): AsyncGenerator<Progress, void, void>;
  push(name: string, signal?: AbortSignal): AsyncGenerator<Progress, void, void>;
  readonly library: ReturnType<typeof makeLibrary>;
  close(): Promise<void>;
}

/** Waits are short, parts and chunks small; a stall is still longer than a busy machine's pauses. */
const QUICK: Limits = { ...LIMITS, backoffMs: 1, partBytes: 64 * KB, chunkBytes: 100 * KB };

export async function makePlace(
  limits: Partial<Limits> = {},
  insecure = true,
  more: Pick<Parameters<typeof makeRegistry>[0], "runs" | "source" | "login" | "lookup"> = {},
): Promise<Place> {
  const home = await tempFolder();
  const root = join(home, "models");
  const library = makeLibrary({ root, importDirs: [], noPrune: false, log: silent });
  await ensureKey(home);
  const registry = makeRegistry({ library, home, version: "1.2.3", limits: { ...QUICK, ...limits }, ...more });
  const never = new AbortController().signal;
  const address = (name: string) => parseAddress(name, { insecure });
  return {
    root,
    home,
    library,
    pull: (name, signal = never) => registry.pull({ address: address(name), signal }),
    push: (name, signal = never) => registry.push({ address: address(name), signal }),
    close: () => rm(home, { recursive: true }),
  };
}

/** Bytes that differ between seeds and cannot be compressed. */
export function noise(length: number, seed: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let x = seed | 1;
  for (let i = 0; i < length; i++) {
    x = (Math.imul(x, 1664525) + 1013904223) | 0;
    bytes[i] = x >>> 24;
  }
  return bytes;
}

/** Puts a model of these blobs on the front. @returns its name, for pulling */
export function publish(front: Front, model: string, layers: readonly Uint8Array<ArrayBuffer>[]): string {
  const config = new TextEncoder().encode(`{"model_format":"gguf","model_type":"${model}"}`);
  const manifest = {
    schemaVersion: 2,
    config: { mediaType: CONFIG_TYPE, ...front.put(config) },
    layers: layers.map((bytes) => ({ mediaType: mediaType("model"), ...front.put(bytes) })),
  };
  front.manifests.set(`library/${model}:latest`, new TextEncoder().encode(JSON.stringify(manifest)));
  return `${front.host}/library/${model}`;
}
