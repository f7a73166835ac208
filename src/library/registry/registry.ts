/** Pulling and pushing models: the entry to this folder. It loads the rest of it at the first transfer. */
import { shuttingDown } from "../../base/index.ts";
import type { Progress } from "../create/creation.ts";
import { untilClosed } from "../store/until-closed.ts";
import type { RegistryParts, Transfer, Transfers } from "./transfers.ts";

export type { Transfer } from "./transfers.ts";

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

export function makeRegistry(parts: RegistryParts): Registry {
  const closing = new AbortController();
  let loading: Promise<Transfers> | undefined;
  const load = (): Promise<Transfers> =>
    (loading ??= import("./transfers.ts").then(({ makeTransfers }) => makeTransfers(parts)));
  const open = <T>(
    transfer: Transfer,
    start: (transfers: Transfers, transfer: Transfer) => AsyncGenerator<T, void, void>,
  ): AsyncGenerator<T, void, void> =>
    untilClosed(closing.signal, transfer.signal, async function* (signal) {
      yield* start(await load(), { ...transfer, signal });
    });
  return {
    pull: (transfer) => open(transfer, (transfers, each) => transfers.pull(each)),
    has: async (transfer) => {
      let isThere = false;
      for await (const found of open(transfer, (transfers, each) => transfers.has(each))) isThere = found;
      return isThere;
    },
    push: (transfer) => open(transfer, (transfers, each) => transfers.push(each)),
    close: () => closing.abort(shuttingDown()),
  };
}
