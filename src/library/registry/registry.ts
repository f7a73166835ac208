/** Pulling and pushing models: the entry to this folder. */
import { arch, platform } from "node:os";
import { shuttingDown } from "../../base/index.ts";
import type { Progress } from "../create/creation.ts";
import type { Library } from "../create/library.ts";
import { isHostless } from "../store/name.ts";
import { untilClosed } from "../store/until-closed.ts";
import type { Address } from "./address.ts";
import { makeBrokenBlobs } from "./broken-blobs.ts";
import { makeClient, type RegistryClient } from "./client.ts";
import { makeDownloads } from "./downloads.ts";
import { readKey } from "./key.ts";
import type { Runs } from "../create/architecture.ts";
import { hasManifest, pullModel } from "./pull.ts";
import { pushModel } from "./push.ts";
import type { Lookup } from "./reach.ts";
import { LIMITS, type Limits } from "./retry.ts";

export interface Transfer {
  readonly address: Address;
  /** Aborted when the last caller has left. */
  readonly signal: AbortSignal;
  /** For pulls at first use: called with the number of bytes to come, before they are downloaded. */
  readonly makeRoom?: (bytes: number) => Promise<void>;
}

export interface Registry {
  /** Pulls a model; see `pullModel`. */
  pull(transfer: Transfer): AsyncGenerator<Progress, void, void>;
  /** Returns whether the registry has a manifest of that name. Throws `registry`. */
  has(transfer: Transfer): Promise<boolean>;
  /** Pushes a model; see `pushModel`. */
  push(transfer: Transfer): AsyncGenerator<Progress, void, void>;
  /** Ends all transfers and allows no new ones. Received bytes are kept. */
  close(): void;
}

interface RegistryParts {
  readonly library: Library;
  /** Folder of the key. */
  readonly home: string;
  readonly version: string;
  /** Returns whether an architecture can run here; absent: all can. */
  readonly runs?: Runs;
  readonly limits?: Limits;
  /** The registry of names without a host; absent: the public one. */
  readonly source?: URL | undefined;
  /** `user:password`, sent to the source only. */
  readonly login?: string | undefined;
  /** Resolves hosts; absent: the system's resolver. */
  readonly lookup?: Lookup;
  /** Milliseconds. */
  readonly now?: () => number;
}

export function makeRegistry(parts: RegistryParts): Registry {
  const { library, home, version, runs, limits = LIMITS, source, login, lookup, now = Date.now } = parts;
  const broken = makeBrokenBlobs(now);
  const downloads = makeDownloads({ root: library.root, limits, broken });
  const closing = new AbortController();
  const userAgent = `hearth/${version} (${arch()} ${platform()})`;
  /** A transfer ends with its generator, even if that is left early. */
  const run = async function* <T>(
    { address, signal }: Transfer,
    steps: (client: RegistryClient) => AsyncGenerator<T, void, void>,
  ): AsyncGenerator<T, void, void> {
    const left = new AbortController();
    const wanted = AbortSignal.any([signal, left.signal]);
    try {
      const known = address.base.origin === source?.origin ? login : undefined;
      const client = { address, readKey: () => readKey(home), userAgent, limits, signal: wanted, login: known, lookup };
      yield* steps(makeClient(client));
    } finally {
      left.abort();
    }
  };
  const meant = (address: Address): Address =>
    source && isHostless(address.name) ? { ...address, base: source, insecure: source.protocol === "http:" } : address;
  const open = <T>(
    { address, signal }: Transfer,
    steps: (client: RegistryClient) => AsyncGenerator<T, void, void>,
  ): AsyncGenerator<T, void, void> =>
    untilClosed(closing.signal, signal, (ends) => run({ address: meant(address), signal: ends }, steps));
  return {
    pull: (transfer) =>
      open(transfer, (client) => pullModel({ library, downloads, broken, runs, makeRoom: transfer.makeRoom }, client)),
    has: async (transfer) => {
      let isThere = false;
      for await (const found of open(transfer, (client) => hasManifest(client))) isThere = found;
      return isThere;
    },
    push: (transfer) => open(transfer, (client) => pushModel({ library }, client)),
    close: () => closing.abort(shuttingDown()),
  };
}
