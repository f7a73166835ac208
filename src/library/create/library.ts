/**
 * Changes to the models of a store: copying, deleting, and publishing manifests. Changes are serialized, so that no
 * blob is deleted after a new model starts to use it and before its manifest says so.
 */
import { rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError, type Logger, shuttingDown } from "../../base/index.ts";
import type { CheckModel, Runs } from "./architecture.ts";
import { findBlob, writeBlob } from "../store/blobs.ts";
import type { CreateParts, CreateRequest, Progress, Publish } from "./creation.ts";
import type { Digest } from "../store/digest.ts";
import { removeFile, writeBytes, writeDurably } from "../../base/system.ts";
import { encodeManifest, parseManifest, readManifest, readManifestBytes, type Manifest } from "../store/manifest.ts";
import { displayName, fullName, type ModelName } from "../store/name.ts";
import { manifestSegments } from "../store/segments.ts";
import { borrowBlobs, findIn } from "../store/others.ts";
import type { InTurn } from "./quantize-weights.ts";
import { makeStoreLock, type StoreLock } from "../store/lock.ts";
import { digestsOf, removeOrphans } from "../store/references.ts";
import { findName, manifestPath } from "../store/store.ts";
import { untilClosed } from "../store/until-closed.ts";

export interface Library {
  readonly root: string;
  /** Read-only stores of other servers. */
  readonly others: readonly string[];
  /** Folders that Modelfiles and GGUF files may be read from. */
  readonly importDirs: readonly string[];
  /** Call before adding to the store. Throws `conflict` while another server changes it. */
  claim(): void;
  /** Replaces `to`. False if `from` does not exist; throws `bad_file` if it cannot be read. */
  copy(names: { from: ModelName; to: ModelName }): Promise<boolean>;
  /**
   * Deletes a model and the blobs that only it uses. False if the name does not exist; throws `forbidden` if only
   * another server's store has it.
   */
  remove(name: ModelName): Promise<boolean>;
  /** Creates a model; see `createModel`. */
  create(request: CreateRequest, options?: { signal?: AbortSignal }): AsyncGenerator<Progress, void, void>;
  /** Ends running creations, and waits until their partial files are removed. */
  close(): Promise<void>;
  /**
   * Publishes a foreign manifest, byte for byte; its blobs must exist. Throws `bad_file` if one is missing.
   * @returns the digests of the replaced model
   */
  adopt(name: ModelName, manifest: Uint8Array): Promise<readonly Digest[]>;
  /** Deletes the given blobs that no model uses. */
  sweep(digests: readonly Digest[]): Promise<void>;
  /**
   * Protects blobs that no manifest refers to yet, until the returned function is called. More may be added meanwhile.
   */
  hold(digests: ReadonlySet<Digest>): () => void;
}

interface LibraryParts {
  readonly root: string;
  readonly others?: readonly string[];
  /** Returns whether an architecture can run here; absent: all can. */
  readonly runs?: Runs;
  /** Checks a model that is created from files; absent: errors show at its first request. */
  readonly checkModel?: CheckModel;
  readonly importDirs: readonly string[];
  /** Keeps blobs that no model refers to. */
  readonly noPrune: boolean;
  readonly log: Logger;
  /** Absent: a private one. */
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
  /** Deletes blobs of the replaced model that no model uses. */
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
        const { config, layers } = parseManifest(bytes, path); // never copies a manifest that does not parse
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
    `model '${displayName(name)}' is in the store of another server, which Hearth only reads: delete it there`,
  );

/** Creates models until closed. */
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

/** Loaded at the first creation: readers of all weight types and both template languages. */
async function* createdModel(parts: CreateParts, request: CreateRequest): AsyncGenerator<Progress, void, void> {
  const { createModel } = await import("./create.ts");
  yield* createModel(parts, request);
}

/** Runs work one by one, in order of arrival. @param before may throw for an item */
function makeQueue(before = (): unknown => undefined): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const run = last.then(before).then(work);
    last = run.catch(() => {});
    return run;
  };
}

/** The digests in the manifest at a path; empty if it is missing or unreadable. */
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

/** Folders that contained only this manifest; keeps `manifests/` itself. */
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
