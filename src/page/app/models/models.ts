/** The models of the server: the list, their capabilities, and the models in memory. */
import { computed, signal, type ReadonlySignal } from "@preact/signals";
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
  /** Absent: the server does not know them. */
  readonly capabilities?: readonly string[];
}

export interface LoadedModel {
  readonly name: string;
  readonly size: number;
  readonly size_vram: number;
  readonly expires_at: string;
  readonly context_length: number;
}

/** The places where models of other formats than GGUF run. */
const PLACES_OF: Readonly<Record<string, readonly Place[]>> = { onnx: ["server"], mlc: ["webllm"] };
/** The model that ships with Hearth; others of that name are larger. */
const DEMO = { name: "hearth:latest", bytesMax: 20e6 } as const;

/** Without the default tag. */
export const shortName = (name: string): string => name.replace(/:latest$/, "");

export const isDemo = ({ name, size }: StoredModel): boolean => name === DEMO.name && size < DEMO.bytesMax;

/** True if unknown: the model may be tried. */
const can = ({ capabilities }: StoredModel, what: string): boolean => capabilities?.includes(what) ?? true;

export const canChat = (model: StoredModel): boolean => can(model, "completion");

/** True if it accepts pictures in that place. */
export const canSee = (model: StoredModel, place: Place): boolean => place !== "webllm" && can(model, "vision");

export class Models {
  readonly #api: Api;
  readonly #all = signal<readonly StoredModel[] | undefined>(undefined);
  readonly #loaded = signal<readonly LoadedModel[]>([]);
  readonly #problem = signal<unknown>(undefined);
  /** Models that will be deleted unless the user undoes it. */
  readonly #leaving = signal<ReadonlySet<string>>(new Set());

  constructor(api: Api) {
    this.#api = api;
  }

  /** Undefined: not loaded yet. Latest change first. */
  readonly list: ReadonlySignal<readonly StoredModel[] | undefined> = computed(() =>
    this.#all.value?.filter(({ name }) => !this.#leaving.value.has(name)),
  );

  /** Models that can chat. */
  readonly chatting: ReadonlySignal<readonly StoredModel[]> = computed(() => this.list.value?.filter(canChat) ?? []);

  get loaded(): ReadonlySignal<readonly LoadedModel[]> {
    return this.#loaded;
  }

  /** The error of loading the list. */
  get problem(): ReadonlySignal<unknown> {
    return this.#problem;
  }

  async refresh(): Promise<void> {
    try {
      const [{ models }] = await Promise.all([
        this.#api.json<{ models: StoredModel[] }>("/api/tags"),
        this.refreshLoaded(),
      ]);
      this.#all.value = models;
      this.#problem.value = undefined;
    } catch (error) {
      this.#problem.value = error;
    }
  }

  async refreshLoaded(): Promise<void> {
    const { models } = await this.#api.json<{ models: LoadedModel[] }>("/api/ps");
    this.#loaded.value = models;
  }

  find(name: string): StoredModel | undefined {
    return this.list.value?.find((each) => each.name === name || each.name === `${name}:latest`);
  }

  /** The model for a new chat: that of the last chat, else the newest that is not the demo. */
  preferred(last: string): string {
    const all = this.chatting.value;
    const found = all.find(({ name }) => name === last) ?? all.find((each) => !isDemo(each)) ?? all[0];
    return found?.name ?? "";
  }

  /** Hides a model before its deletion, or shows it again. */
  setLeaving(name: string, isLeaving: boolean): void {
    const leaving = new Set(this.#leaving.peek());
    if (isLeaving) leaving.add(name);
    else leaving.delete(name);
    this.#leaving.value = leaving;
  }

  /** Deletes a model of the server, even if the tab closes meanwhile. */
  async remove(name: string): Promise<void> {
    try {
      await this.#api.json("/api/delete", { method: "DELETE", body: { model: name }, keepalive: true });
      await this.refresh();
    } finally {
      this.setLeaving(name, false);
    }
  }

  /** Places where a model can run, the best first. */
  placesOf(name: string): readonly Place[] {
    return PLACES_OF[this.find(name)?.details.format ?? ""] ?? ["server", "page"];
  }

  /** The preferred place if the model runs there, else its best place. */
  placeOf(name: string, preferred: Place): Place {
    const places = this.placesOf(name);
    return places.includes(preferred) ? preferred : places[0]!;
  }

  /** The model in memory. */
  loadedOf(name: string): LoadedModel | undefined {
    const full = name.includes(":") ? name : `${name}:latest`;
    return this.#loaded.value.find((each) => each.name === full || each.name === name);
  }
}
