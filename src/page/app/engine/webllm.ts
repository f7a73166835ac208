/** WebLLM in this page: the MLC model in memory. Its code is fetched on first use. */
import { signal, type ReadonlySignal } from "@preact/signals";
import type { Api } from "../base/api.ts";
import type { Answerer } from "../chat/answers.ts";
import type { Words } from "../words/index.ts";
import { makeQueue } from "./queue.ts";
import type { Present, WebLlmModel } from "./webllm-chat.ts";

export class WebLlm {
  readonly #api: Api;
  readonly #words: () => Words;
  readonly #model = signal<WebLlmModel | undefined>(undefined);
  readonly #inTurn = makeQueue();
  #present: Present | undefined;

  constructor(api: Api, words: () => Words) {
    this.#api = api;
    this.#words = words;
  }

  /** The model in memory. */
  get model(): ReadonlySignal<WebLlmModel | undefined> {
    return this.#model;
  }

  unload(): void {
    this.#present?.end();
    this.#hold(undefined);
  }

  /** Answers chats. */
  readonly answer: Answerer = async function* (this: WebLlm, ...asked: Parameters<Answerer>) {
    const { answer } = await import("./webllm-chat.ts");
    const [present, hold] = [() => this.#present, (next: Present | undefined) => this.#hold(next)];
    yield* answer({ api: this.#api, words: this.#words, present, hold, inTurn: this.#inTurn }, ...asked);
  }.bind(this);

  #hold(present: Present | undefined): void {
    this.#present = present;
    this.#model.value = present?.model;
  }
}
