/**
 * The queue of texts to embed. A run gets the oldest text and others of similar length, from any request. Requests
 * alternate in having the oldest text.
 */

import type { RowAdapter } from "../program/backend.ts";

export interface EmbedRequest {
  readonly id: number;
  /** At least one token each. */
  readonly texts: readonly Int32Array[];
  /** Returns a score per text instead of a vector. */
  readonly ranks?: boolean;
  /** Index of the first token of a pair's second text; default: all tokens belong to one text. */
  readonly second?: number | undefined;
  readonly adapters?: readonly RowAdapter[];
}

export interface EmbedText {
  readonly id: number;
  readonly index: number;
  readonly tokens: Int32Array;
  readonly ranks: boolean;
  readonly second: number | undefined;
  readonly adapters: readonly RowAdapter[];
}

interface GroupLimits {
  /** Maximum tokens of a run, padding included; a longer text runs alone. */
  readonly tokensMax: number;
  readonly textsMax: number;
}

/** Texts that are considered for a run. */
const WINDOW = 512;
/** Maximum share of padding in a run that is large enough otherwise. */
const FILLING_MAX = 0.15;
const WORTH_TOKENS = 64;

export class EmbedQueue {
  /** Waiting texts by request; the next run begins with the first request. */
  #requests: { readonly id: number; waiting: EmbedText[] }[] = [];

  get size(): number {
    return this.#requests.length;
  }

  add({ id, texts, ranks = false, second, adapters = [] }: EmbedRequest): void {
    const waiting = texts.map((tokens, index) => ({ id, index, tokens, ranks, second, adapters }));
    if (waiting.length > 0) this.#requests.push({ id, waiting });
  }

  remove(id: number): void {
    this.#requests = this.#requests.filter((request) => request.id !== id);
  }

  /** Removes the texts of the next run; empty if no text waits. */
  take(limits: GroupLimits): EmbedText[] {
    const window = this.#window();
    const group = window.length > 0 ? groupAround(window[0]!, window, limits) : [];
    const taken = new Set(group);
    for (const request of this.#requests) request.waiting = request.waiting.filter((text) => !taken.has(text));
    const [first, ...others] = this.#requests;
    if (first) this.#requests = [...others, first].filter(({ waiting }) => waiting.length > 0);
    return group;
  }

  /** The oldest texts, alternating between requests. */
  #window(): EmbedText[] {
    const window: EmbedText[] = [];
    for (let round = 0; window.length < WINDOW; round++) {
      const before = window.length;
      for (const { waiting } of this.#requests) if (round < waiting.length) window.push(waiting[round]!);
      if (window.length === before) break;
    }
    return window;
  }
}

/** A text and its neighbours by length, within the limits. */
function groupAround(text: EmbedText, window: readonly EmbedText[], limits: GroupLimits): EmbedText[] {
  const byLength = window.toSorted((a, b) => a.tokens.length - b.tokens.length);
  const lengthAt = (at: number): number => byLength[at]?.tokens.length ?? NaN;
  const place = byLength.indexOf(text);
  let [from, end] = [place, place + 1];
  let total = text.tokens.length;
  while (end - from < limits.textsMax) {
    const [shorter, longer] = [lengthAt(from - 1), lengthAt(end)];
    const goesDown = !(longer - text.tokens.length < text.tokens.length - shorter) && shorter > 0;
    const next = goesDown ? shorter : longer;
    if (!(next > 0)) break;
    const padded = (end - from + 1) * Math.max(lengthAt(end - 1), next);
    const filling = 1 - (total + next) / padded;
    if (padded > limits.tokensMax || (filling > FILLING_MAX && total >= WORTH_TOKENS)) break;
    total += next;
    if (goesDown) from--;
    else end++;
  }
  return byLength.slice(from, end);
}
