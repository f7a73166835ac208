/** The transfers of a registry, and the state that they share. */
import { arch, platform } from "node:os";
import type { Runs } from "../create/architecture.ts";
import type { Progress } from "../create/creation.ts";
import type { Library } from "../create/library.ts";
import { isHostless } from "../store/name.ts";
import type { Address } from "./address.ts";
import { makeBrokenBlobs } from "./broken-blobs.ts";
import { makeClient, type RegistryClient } from "./client.ts";
import { makeDownloads } from "./downloads.ts";
import { readKey } from "./key.ts";
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

export interface RegistryParts {
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

/** Each transfer ends with its generator, even if that is left early. */
export interface Transfers {
  pull(transfer: Transfer): AsyncGenerator<Progress, void, void>;
  /** Yields whether the registry has the manifest. */
  has(transfer: Transfer): AsyncGenerator<boolean, void, void>;
  push(transfer: Transfer): AsyncGenerator<Progress, void, void>;
}

export function makeTransfers(parts: RegistryParts): Transfers {
  const { library, home, version, runs, limits = LIMITS, source, login, lookup, now = Date.now } = parts;
  const broken = makeBrokenBlobs(now);
  const downloads = makeDownloads({ root: library.root, limits, broken });
  const userAgent = `hearth/${version} (${arch()} ${platform()})`;
  const addressOf = (address: Address): Address =>
    source && isHostless(address.name) ? { ...address, base: source, insecure: source.protocol === "http:" } : address;
  const run = async function* <T>(
    transfer: Transfer,
    steps: (client: RegistryClient) => AsyncGenerator<T, void, void>,
  ): AsyncGenerator<T, void, void> {
    const address = addressOf(transfer.address);
    const left = new AbortController();
    const signal = AbortSignal.any([transfer.signal, left.signal]);
    try {
      const known = address.base.origin === source?.origin ? login : undefined;
      yield* steps(
        makeClient({ address, readKey: () => readKey(home), userAgent, limits, signal, login: known, lookup }),
      );
    } finally {
      left.abort();
    }
  };
  return {
    pull: (transfer) =>
      run(transfer, (client) => pullModel({ library, downloads, broken, runs, makeRoom: transfer.makeRoom }, client)),
    has: (transfer) => run(transfer, hasManifest),
    push: (transfer) => run(transfer, (client) => pushModel({ library }, client)),
  };
}
