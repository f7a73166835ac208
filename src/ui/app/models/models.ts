/** The models of the server: which there are, which are in memory, and what is being brought. */
import { signal, type ReadonlySignal } from "@preact/signals";
import type { Api } from "../base/api.ts";
import type { Place } from "../chat/tree.ts";

export interface StoredModel {
  readonly name: string;
  readonly size: number;
  readonly digest: string;
  readonly modified_at: string;
  readonly details: {
    readonly family?: string;
    readonly parameter_size?: string;
    readonly quantization_level?: string;
    readonly format?: string;
  };
}

export interface LoadedModel {
  readonly name: string;
  readonly size: number;
  readonly size_vram: number;
  readonly expires_at: string;
  readonly context_length: number;
}

/** Where models of another format than GGUF run. */
const PLACES_OF: Readonly<Record<string, readonly Place[]>> = { onnx: ["server"], mlc: ["webllm"] };

export class Models {
  readonly #api: Api;
  readonly #list = signal<readonly StoredModel[] | undefined>(undefined);
  readonly #loaded = signal<readonly LoadedModel[]>([]);
  readonly #problem = signal<string | undefined>(undefined);

  constructor(api: Api) {
    this.#api = api;
  }

  /** Undefined: not known yet. */
  get list(): ReadonlySignal<readonly StoredModel[] | undefined> {
    return this.#list;
  }

  get loaded(): ReadonlySignal<readonly LoadedModel[]> {
    return this.#loaded;
  }

  /** Why the list is not known. */
  get problem(): ReadonlySignal<string | undefined> {
    return this.#problem;
  }

  async refresh(): Promise<void> {
    try {
      const [{ models }] = await Promise.all([
        this.#api.json<{ models: StoredModel[] }>("/api/tags"),
        this.refreshLoaded(),
      ]);
      this.#list.value = models;
      this.#problem.value = undefined;
    } catch (error) {
      this.#problem.value = error instanceof Error ? error.message : String(error);
    }
  }

  async refreshLoaded(): Promise<void> {
    const { models } = await this.#api.json<{ models: LoadedModel[] }>("/api/ps");
    this.#loaded.value = models;
  }

  /** Where a model can run, the best first. */
  placesOf(name: string): readonly Place[] {
    const found = this.#list.value?.find((each) => each.name === name || each.name === `${name}:latest`);
    return PLACES_OF[found?.details.format ?? ""] ?? ["server", "page"];
  }

  /** The wished place, or where the model runs else. */
  placeOf(name: string, wished: Place): Place {
    const places = this.placesOf(name);
    return places.includes(wished) ? wished : places[0]!;
  }

  /** How many tokens a model's context has, where it is in memory. */
  contextOf(name: string): number | undefined {
    const full = name.includes(":") ? name : `${name}:latest`;
    return this.#loaded.value.find((each) => each.name === full || each.name === name)?.context_length;
  }
}
