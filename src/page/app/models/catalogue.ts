/** The server's catalogue: popular models, and whether they fit its machine. */
import { signal, type ReadonlySignal } from "@preact/signals";
import type { Api } from "../base/api.ts";

export const PURPOSES = ["chat", "reasoning", "code", "vision", "embedding"] as const;
export type Purpose = (typeof PURPOSES)[number];

export interface CatalogueModel {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly purpose: Purpose;
  readonly parameters: string;
  readonly size: number;
  readonly capabilities: readonly string[];
  readonly license: string;
  readonly fits: "yes" | "tight" | "no";
  readonly reason?: string;
}

export interface CatalogueList {
  /** Year and month. */
  readonly updated: string;
  readonly memory: { readonly available: number };
  /** Names for a first model, the most useful first. */
  readonly suggested: readonly string[];
  readonly models: readonly CatalogueModel[];
}

export class Catalogue {
  readonly #api: Api;
  readonly #list = signal<CatalogueList | undefined>(undefined);
  readonly #problem = signal<unknown>(undefined);
  #isReading = false;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Undefined: not loaded yet. */
  get list(): ReadonlySignal<CatalogueList | undefined> {
    return this.#list;
  }

  /** The error of loading it. */
  get problem(): ReadonlySignal<unknown> {
    return this.#problem;
  }

  /** Loads it again, because memory and disk change. */
  async refresh(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      this.#list.value = await this.#api.json<CatalogueList>("/api/catalogue");
      this.#problem.value = undefined;
    } catch (error) {
      this.#problem.value = error;
    } finally {
      this.#isReading = false;
    }
  }
}
