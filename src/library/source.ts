/**
 * A registry as the source of models: a missing model is pulled at its first use, and pulled models are evicted, least
 * recently used first, when `bytesMax` is reached. Models that a user created or pulled stay. A file below `cached/`
 * marks each such model and records its last use.
 */
import { mkdir, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { AppError, type Logger, messageOf } from "../base/index.ts";
import type { Digest } from "./store/digest.ts";
import type { Library } from "./create/library.ts";
import { blobsOf, readManifest } from "./store/manifest.ts";
import { displayName, fullName, isHostless, makeName, parseReference, type ModelName } from "./store/name.ts";
import { manifestSegments, nameAt } from "./store/segments.ts";
import type { Address } from "./registry/address.ts";
import type { Registry } from "./registry/registry.ts";
import { manifestPath, type Store } from "./store/store.ts";

/** The shortest time between two records of a model's use. */
const TOUCH_MS = 60_000;
/** Time for which the source's answer that it lacks a model is kept. */
const MISSING_MS = 10_000;
const MISSING_MAX = 1000;
const FOLDER = "cached";

export interface SourceParts {
  readonly store: Store;
  readonly registry: Pick<Registry, "pull" | "has">;
  readonly library: Pick<Library, "root" | "remove">;
  /** Bytes of all models from there; Infinity: the whole disk. */
  readonly bytesMax: number;
  /** Display names of models that are loaded or being loaded, which are not evicted. */
  readonly inUse: () => readonly string[];
  readonly now: () => number;
  readonly log: Logger;
}

/** A store whose `resolve` pulls missing models whose names have no host. Throws `registry` and `storage`, too. */
export function withSource(parts: SourceParts): Store {
  const { store, now } = parts;
  const cache = new ModelCache(parts);
  const missing = new Map<string, number>();
  const pulling = new Map<string, Promise<boolean>>();
  const pull = (name: ModelName): Promise<boolean> => {
    const key = fullName(name);
    const missedAt = missing.get(key);
    if (missedAt !== undefined && now() - missedAt < MISSING_MS) return Promise.resolve(false);
    const running = pulling.get(key);
    if (running) return running;
    const begun = cache.pull(name).finally(() => pulling.delete(key));
    pulling.set(key, begun);
    return begun.then((isThere) => {
      missing.delete(key);
      if (!isThere) missing.set(key, now());
      if (missing.size > MISSING_MAX) missing.delete(missing.keys().next().value!); // not empty
      return isThere;
    });
  };
  return {
    ...store,
    isOffered: async (name, signal) => isHostless(name) && cache.isOffered(lowered(name), signal),
    async resolve(text) {
      const found = await store.resolve(text);
      if (found) {
        if (found.root === store.root) await cache.use(found.name);
        return found;
      }
      const name = lowered(parseReference(text));
      return isHostless(name) && (await pull(name)) ? store.resolve(text) : undefined;
    },
  };
}

/** The name in the registries' form: lower case, except for tags. */
const lowered = ({ host, namespace, model, tag }: ModelName): ModelName =>
  makeName({ host, namespace: namespace.toLowerCase(), model: model.toLowerCase(), tag });

/** The registry knows its own host. */
const addressOf = (name: ModelName): Address => ({ name, base: new URL("https://source/"), insecure: false });

/** A model that came from the source. */
interface Cached {
  readonly name: ModelName;
  readonly usedAtMs: number;
  readonly blobs: ReadonlyMap<Digest, number>;
}

/** The models from the source, and the limit on their disk use. */
class ModelCache {
  readonly #parts: SourceParts;
  /** By full name: the last use, which the file may not record yet. */
  readonly #used = new Map<string, { atMs: number; writtenMs: number }>();
  /** Bytes of running downloads. */
  #coming = 0;
  #making: Promise<unknown> = Promise.resolve();

  constructor(parts: SourceParts) {
    this.#parts = parts;
  }

  async use(name: ModelName): Promise<void> {
    const nowMs = this.#parts.now();
    const known = this.#used.get(fullName(name));
    const writtenMs = known?.writtenMs ?? -Infinity;
    const isDue = nowMs - writtenMs > TOUCH_MS;
    this.#used.set(fullName(name), { atMs: nowMs, writtenMs: isDue ? nowMs : writtenMs });
    const at = new Date(nowMs);
    if (isDue) await utimes(this.#marker(name), at, at).catch(() => {}); // a model from elsewhere
  }

  isOffered(name: ModelName, signal: AbortSignal): Promise<boolean> {
    return this.#parts.registry.has({ address: addressOf(name), signal });
  }

  /** False if the source does not have the name. */
  async pull(name: ModelName): Promise<boolean> {
    const { registry, log, library } = this.#parts;
    let reserved = 0;
    const makeRoom = async (bytes: number): Promise<void> => {
      await this.#inTurn(() => this.#makeRoom(name, bytes));
      reserved = bytes;
      // before the model exists, so that its origin is recorded even if the process ends
      await mkdir(dirname(this.#marker(name)), { recursive: true });
      await writeFile(this.#marker(name), "");
    };
    const model = displayName(name);
    log.info("pulling a model from the source", { model });
    try {
      // A separate signal, because the first caller may leave while others wait
      const { signal } = new AbortController();
      for await (const _ of registry.pull({ address: addressOf(name), signal, makeRoom }));
      await this.use(name);
      return true;
    } catch (error) {
      if (!(await isFile(manifestPath(library.root, name)))) await rm(this.#marker(name), { force: true });
      if (error instanceof AppError && error.cause === 404) return false;
      if (!(error instanceof AppError) || error.code !== "registry") throw error;
      const { retryAfterMs } = error;
      const why = `model '${model}' is not here, and its source fails: ${messageOf(error)}`;
      throw new AppError("registry", why, retryAfterMs === undefined ? {} : { retryAfterMs });
    } finally {
      this.#coming -= reserved;
    }
  }

  /**
   * Removes the least recently used models until there is room. Throws `storage`, and removes nothing, if the models in
   * use leave too little.
   */
  async #makeRoom(wanted: ModelName, bytes: number): Promise<void> {
    const { bytesMax, library, log, inUse } = this.#parts;
    const model = displayName(wanted);
    const limit = `models.cacheBytes allows ${bytesMax}`;
    if (bytes > bytesMax) throw new AppError("storage", `model '${model}' takes ${bytes} bytes, and ${limit}`);
    let cached = bytesMax === Infinity ? [] : await this.#list();
    const names = new Set(inUse());
    const busy = cached.filter(({ name }) => names.has(displayName(name)));
    const held = bytesOf(busy);
    if (held + this.#coming + bytes > bytesMax) {
      const why = `${held + this.#coming} bytes are of models in memory or on their way, and ${limit}`;
      throw new AppError("storage", `no room for model '${model}' of ${bytes} bytes: ${why}`, { retryAfterMs: 5000 });
    }
    // a model that shares all its bytes with kept models frees none
    const idle = cached.filter((each) => !busy.includes(each) && bytesOf([...busy, each]) > held);
    for (const oldest of idle) {
      if (bytesOf(cached) + this.#coming + bytes <= bytesMax) break;
      log.info("removing a model to make room for another", { model: displayName(oldest.name), for: model });
      await library.remove(oldest.name);
      await rm(this.#marker(oldest.name), { force: true });
      this.#used.delete(fullName(oldest.name));
      cached = cached.filter((each) => each !== oldest);
    }
    this.#coming += bytes;
  }

  /** Least recently used first. Also deletes marks of missing models. */
  async #list(): Promise<Cached[]> {
    const { library } = this.#parts;
    const found: Cached[] = [];
    const files = await readdir(join(library.root, FOLDER), { recursive: true }).catch(() => []);
    for (const file of files) {
      const segments = file.split(sep);
      if (segments.length !== 4) continue;
      const name = nameAt(segments);
      const manifest = await readManifest(manifestPath(library.root, name)).catch(() => undefined);
      if (!manifest) continue; // being downloaded, or deleted
      const blobs = new Map(blobsOf(manifest).map(({ digest, size }) => [digest, size]));
      const known = this.#used.get(fullName(name))?.atMs;
      found.push({ name, blobs, usedAtMs: known ?? (await stat(this.#marker(name))).mtimeMs });
    }
    return found.toSorted((a, b) => a.usedAtMs - b.usedAtMs);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#making.then(work);
    this.#making = run.catch(() => {});
    return run;
  }

  #marker(name: ModelName): string {
    return join(this.#parts.library.root, FOLDER, ...manifestSegments(name));
  }
}

/** Shared blobs count once. */
const bytesOf = (cached: readonly Cached[]): number =>
  new Map(cached.flatMap(({ blobs }) => [...blobs])).values().reduce((sum, size) => sum + size, 0);

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
