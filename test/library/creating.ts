/** A library over an empty store in a temporary folder, and requests to create models in it. */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { makeLogger, type Logger } from "../../src/base/log.ts";
import type { CreateRequest, Progress } from "../../src/library/create/creation.ts";
import { makeLibrary, type Library } from "../../src/library/create/library.ts";
import { parseName } from "../../src/library/store/name.ts";
import { openStore, type Store } from "../../src/library/store/store.ts";
import { tempFolder } from "./fixture.ts";

export const silent: Logger = makeLogger({ write: () => {}, now: Date.now, debug: false });

export interface Workplace {
  /** Contains everything else: remove it at the end. */
  readonly folder: string;
  /** The store's. */
  readonly root: string;
  /** The folder whose files Modelfiles may name. */
  readonly allowed: string;
  readonly store: Store;
  readonly library: Library;
}

export async function makeWorkplace(): Promise<Workplace> {
  const folder = await tempFolder();
  const root = join(folder, "models");
  const allowed = join(folder, "allowed");
  await mkdir(allowed);
  const library = makeLibrary({ root, importDirs: [allowed], noPrune: false, log: silent });
  return { folder, root, allowed, store: await openStore(root), library };
}

/** A request in fields; its default name is `new`. */
export const fields = (request: Partial<CreateRequest>): CreateRequest => ({
  shape: "fields",
  name: parseName("new"),
  licenses: [],
  parameters: {},
  messages: [],
  extras: {},
  capabilities: [],
  sources: [],
  ...request,
});

/** The statuses to the end, with short names for the digests. */
export const statusesOf = async (steps: AsyncIterable<Progress>): Promise<string[]> =>
  (await Array.fromAsync(steps)).map(short);

export const short = ({ status }: Progress): string => status.replace(/sha256:[0-9a-f]{64}/, "D");

/** Statuses, with repeated ones once. */
export const distinct = (statuses: readonly string[]): string[] =>
  statuses.filter((status, i) => status !== statuses[i - 1] || status.endsWith("D"));

/** Sorted names of all files in a store's `blobs/`. */
export const blobsIn = async (root: string): Promise<string[]> =>
  (await readdir(join(root, "blobs")).catch(() => [])).sort();
