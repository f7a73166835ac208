/** Requests of an operator to the gateway, with the gateway token, which is kept for this tab. */
import type { Kept } from "../base/kept.ts";
import { signal, type ReadonlySignal } from "@preact/signals";
import { bearer, Refused, type Api, type Ask } from "../base/api.ts";

const TOKEN = "hearth-gateway-token";

/** Access to the gateway. `off`: the server has no gateway; `locked`: its gateway has no token. */
export type Access = "unknown" | "open" | "asks" | "refused" | "off" | "locked";

export class Admin {
  readonly #api: Api;
  readonly #storage: Kept;
  readonly #access = signal<Access>("unknown");

  constructor(api: Api, storage: Kept) {
    this.#api = api;
    this.#storage = storage;
  }

  get access(): ReadonlySignal<Access> {
    return this.#access;
  }

  useToken(token: string): void {
    this.#storage.setItem(TOKEN, token);
    this.#access.value = "unknown";
  }

  /** Finds out the access, without a request that is sure to be refused. */
  async look(hasGateway: boolean): Promise<void> {
    if (!hasGateway) this.#access.value = "off";
    else if (this.#storage.getItem(TOKEN) === null) this.#access.value = "asks";
    else await this.ask("mappings").catch(() => {}); // `access` has the result
  }

  /** Throws like the API; `access` reports a refused token. */
  async ask<T>(path: string, ask: Ask = {}): Promise<T> {
    const token = this.#storage.getItem(TOKEN);
    try {
      const found = await this.#api.json<T>(`/hooks-admin/${path}`, { ...ask, headers: bearer(token) });
      this.#access.value = "open";
      return found;
    } catch (error) {
      if (error instanceof Refused && error.status === 401) this.#access.value = token === null ? "asks" : "refused";
      // only for these requests: on others 404 means an unknown delivery
      if (error instanceof Refused && error.status === 404 && /^(mappings|deliveries\?.*)$/.test(path)) {
        this.#access.value = "locked";
      }
      throw error;
    }
  }
}

export interface Run {
  readonly id: string;
  readonly state: string;
  readonly reply: string;
}

export interface Delivery {
  readonly id: string;
  readonly receivedAt: number;
  readonly path: string;
  readonly mappingId: string | null;
  readonly authKind: string;
  readonly authId: string;
  readonly bodyBytes: number;
  readonly title: string | null;
  readonly replayOf: string | null;
  readonly runs: readonly Run[];
}

export interface Mapping {
  readonly id: string;
  readonly preset: string | null;
  readonly path: string | null;
  readonly action: string;
  readonly channel: string | null;
  readonly problem: string | null;
}

export interface Finding {
  readonly id: string;
  readonly severity: "error" | "warn" | "info";
  readonly key: string;
  readonly where: string;
  readonly message: string;
}

/** A run's state, or its reply's if that failed: for the recipient such a run has failed. */
export function fateOf({ state, reply }: Run): {
  readonly state: string;
  readonly lost?: string;
  readonly look: string;
} {
  const isLost = reply === "failed" || reply === "unknown";
  return isLost ? { state, lost: reply, look: tagOf(reply) } : { state, look: tagOf(state) };
}

/** The tag class of a state: succeeded, failed, or under way. */
function tagOf(state: string): string {
  if (/^(succeeded|delivered|sent|done)$/.test(state)) return "tag good";
  if (/^(failed|dead|timed_out|error|unknown|refused)$/.test(state)) return "tag bad";
  return /^(running|queued|sending|pending)$/.test(state) ? "tag" : "tag plain-tag";
}
