/**
 * Recent output items of models: clients that assume stored responses send an item's id instead of the item. This is a
 * convenience: items of a distant past, from before a restart, or of another server are unknown.
 */
import { type Fields } from "../../base/index.ts";
import type { Item } from "./response.ts";

const ITEMS_MAX = 4096;
const CHARS_MAX = 16 * 2 ** 20;

interface Kept {
  readonly owner: string;
  readonly item: Item;
  readonly chars: number;
}

export class RecentItems {
  /** By id, most recently used last. */
  readonly #kept = new Map<string, Kept>();
  #chars = 0;

  keep(owner: string, items: readonly Item[]): void {
    for (const item of items) {
      const chars = JSON.stringify(item).length;
      this.#kept.set(item.id, { owner, item, chars });
      this.#chars += chars;
    }
    for (const id of this.#kept.keys()) {
      if (this.#kept.size <= ITEMS_MAX && this.#chars <= CHARS_MAX) return;
      this.#remove(id);
    }
  }

  find(owner: string, id: string): Fields | undefined {
    const kept = this.#kept.get(id);
    if (kept?.owner !== owner) return undefined;
    this.#kept.delete(id);
    this.#kept.set(id, kept);
    return { ...kept.item };
  }

  #remove(id: string): void {
    this.#chars -= this.#kept.get(id)?.chars ?? 0;
    this.#kept.delete(id);
  }
}
