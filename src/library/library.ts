/**
 * Changes to the models of a store: copy, delete, and putting a manifest in place. One change at a time, so that no
 * blob is deleted between the moment a new model counts on it and the moment its manifest says so.
 */
import { rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError, type Logger, shuttingDown } from "../base/index.ts";
import type { CheckModel, Runs } from "./architecture.ts";
import { findBlob, writeBlob } from "./blobs.ts";
import type { CreateParts, CreateRequest, Progress, Publish } from "./creation.ts";
import type { Digest } from "./digest.ts";
import { removeFile, writeBytes, writeDurably } from "../base/system.ts";
import { encodeManifest, parseManifest, readManifest, readManifestBytes, type Manifest } from "./manifest.ts";
import { displayName, fullName, manifestSegments, type ModelName } from "./name.ts";
import { borrowBlobs, findIn } from "./others.ts";
import type { InTurn } from "./quantize-weights.ts";
import { makeStoreLock, type StoreLock } from "./lock.ts";
import { digestsOf, removeOrphans } from "./references.ts";
import { findName, manifestPath } from "./store.ts";
import { untilClosed } from "./until-closed.ts";

export interface Library {
  readonly root: string;
  /** Stores of other servers, which are only read. */
  readonly others: readonly string[];
  /** Folders that Modelfiles and GGUF files may be read from. */
  readonly importDirs: readonly string[];
  /** Call before anything is added to the store. Throws `conflict` while another server changes it. */
  claim(): void;
  /** Replaces what `to` was. False where there is no `from`; throws `bad_file` where that cannot be read. */
  copy(names: { from: ModelName; to: ModelName }): Promise<boolean>;
  /**
   * Deletes a model and the blobs that only it has. False where there is none of that name; throws `forbidden` where
   * only another server's store has it.
   */
  remove(name: ModelName): Promise<boolean>;
  /** Makes a model; see `createModel`. */
  create(request: CreateRequest, options?: { signal?: AbortSignal }): AsyncGenerator<Progress, void, void>;
  /** Ends models that are being made, and waits until nothing of their weights is left half-written. */
  close(): Promise<void>;
  /**
   * Puts a manifest from elsewhere in place, byte for byte, its blobs being there. Throws `bad_file` where one is not.
   * @returns what the model that it replaces referred to
   */
  adopt(name: ModelName, manifest: Uint8Array): Promise<readonly Digest[]>;
  /** Deletes those of the blobs that no model needs. */
  sweep(digests: readonly Digest[]): Promise<void>;
  /**
   * Keeps blobs that no manifest refers to yet from being deleted, until the function that it returns is called. More
   * may be added meanwhile.
   */
  hold(digests: ReadonlySet<Digest>): () => void;
}

interface LibraryParts {
  readonly root: string;
  readonly others?: readonly string[];
  /** Whether an architecture can be run here; absent: whatever it is. */
  readonly runs?: Runs;
  /** Looks at a model that is being made of files; absent: its first request tells what is wrong. */
  readonly checkModel?: CheckModel;
  readonly importDirs: readonly string[];
  /** Leave blobs that no model refers to any more. */
  readonly noPrune: boolean;
  readonly log: Logger;
  /** Absent: one of its own. */
  readonly lock?: StoreLock;
}

export function makeLibrary(parts: LibraryParts): Library {
  const { root, others = [], importDirs, noPrune, log, runs, checkModel, lock = makeStoreLock(root) } = parts;
  const inTurn = makeQueue(() => lock.claim());
  const held = new Set<ReadonlySet<Digest>>();
  const isHeld = (digest: Digest): boolean => [...held].some((own) => own.has(digest));
  const sweep = async (digests: readonly Digest[]): Promise<void> => {
    if (noPrune || digests.every(isHeld)) return;
    for (const manifest of await removeOrphans(root, digests, { isShared: !lock.claim(), isHeld })) {
      log.warn("no blobs are deleted: a manifest cannot be read", manifest);
    }
  };
  const put = async (name: ModelName, bytes: Uint8Array): Promise<Digest[]> => {
    const path = manifestPath(root, name);
    const before = await findDigests(path);
    await writeDurably(path, (temporary) => writeBytes(temporary, bytes));
    return before;
  };
  /** Blobs of the model that this replaces go if nothing else needs them. */
  const replace = async (name: ModelName, bytes: Uint8Array): Promise<void> => sweep(await put(name, bytes));
  const publish: Publish = (name, { manifest, contents }) =>
    inTurn(async () => {
      for (const bytes of contents) await writeBlob(root, bytes);
      await checkBlobs(root, manifest);
      await replace((await findName(root, name)) ?? name, encodeManifest(manifest));
    });
  const sweepInTurn = (digests: readonly Digest[]): Promise<void> => inTurn(() => sweep(digests));
  const hold: Library["hold"] = (digests) => {
    held.add(digests);
    return () => void held.delete(digests);
  };
  return {
    root,
    others,
    importDirs,
    claim: () => void lock.claim(),
    copy: ({ from, to }) =>
      inTurn(async () => {
        const source = await findIn([root, ...others], from);
        if (!source) return false;
        const target = (await findName(root, to)) ?? to;
        const path = manifestPath(source.root, source.name);
        const bytes = await readManifestBytes(path);
        const { config, layers } = parseManifest(bytes, path); // what cannot be read is not spread
        if (source.root !== root) await borrowBlobs([config, ...layers], { from: source.root, to: root });
        if (manifestPath(root, target) !== path) await replace(target, bytes);
        return true;
      }),
    remove: (name) =>
      inTurn(async () => {
        const found = await findName(root, name);
        if (!found && (await findIn(others, name))) throw readOnly(name);
        if (!found) return false;
        const path = manifestPath(root, found);
        const digests = await findDigests(path);
        await removeFile(path);
        await removeEmptyParents(root, found);
        await sweep(digests);
        return true;
      }),
    ...makeCreator({ root, others, runs, checkModel, publish, hold, discard: sweepInTurn }, lock),
    adopt: (name, bytes) =>
      inTurn(async () => {
        await checkBlobs(root, parseManifest(bytes, fullName(name)));
        return put((await findName(root, name)) ?? name, bytes);
      }),
    sweep: sweepInTurn,
    hold,
  };
}

const readOnly = (name: ModelName): AppError =>
  new AppError(
    "forbidden",
    `model '${displayName(name)}' lies in the store of another server, which is only read here: delete it there`,
  );

/** Makes models until it is closed. */
function makeCreator(
  parts: Omit<CreateParts, "inTurn" | "signal">,
  lock: StoreLock,
): Pick<Library, "create" | "close"> {
  const inTurn = makeQueue();
  const closing = new AbortController();
  return {
    create: (request, { signal } = {}) =>
      untilClosed(closing.signal, signal, (ends) => {
        lock.claim();
        return createdModel({ ...parts, inTurn, signal: ends }, request);
      }),
    close: async () => {
      closing.abort(shuttingDown());
      await inTurn(async () => {});
      lock.release();
    },
  };
}

/** What reads weights of every type and templates of both kinds is loaded with the first model that is made. */
async function* createdModel(parts: CreateParts, request: CreateRequest): AsyncGenerator<Progress, void, void> {
  const { createModel } = await import("./create.ts");
  yield* createModel(parts, request);
}

/** Runs one piece of work after the other, in the order in which they came. @param before may throw for a piece */
function makeQueue(before = (): unknown => undefined): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const run = last.then(before).then(work);
    last = run.catch(() => {});
    return run;
  };
}

/** What the manifest at a path refers to; nothing where there is none, or one that cannot be read. */
async function findDigests(path: string): Promise<Digest[]> {
  try {
    return digestsOf(await readManifest(path));
  } catch {
    return [];
  }
}

async function checkBlobs(root: string, { config, layers }: Manifest): Promise<void> {
  for (const { digest, size } of [config, ...layers]) {
    const found = await findBlob(root, digest);
    if (found === size) continue;
    const what = found === undefined ? "no such blob" : `${found} bytes`;
    throw new AppError("bad_file", `${digest}: expected a blob of ${size} bytes, found ${what}`);
  }
}

/** The folders that held only this manifest; `manifests/` itself stays. */
async function removeEmptyParents(root: string, name: ModelName): Promise<void> {
  let folder = dirname(join(...manifestSegments(name)));
  for (; folder !== "."; folder = dirname(folder)) {
    const isEmpty = await rmdir(join(root, "manifests", folder)).then(
      () => true,
      () => false,
    );
    if (!isEmpty) return;
  }
}
