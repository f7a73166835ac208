/**
 * What models said lately, item by item: clients that take responses for stored name an item by its id in the place of
 * the item. It is a courtesy: what was said too long ago, before a restart or by another server is gone.
 */
import { type Fields } from "../../base/index.ts";
import type { Item } from "./response.ts";

const ITEMS_MAX = 4096;
const CHARS_MAX = 16 * 2 ** 20;

interface Kept {
  readonly item: Item;
  readonly chars: number;
}

export class SaidItems {
  /** By id, those that were kept or found last behind the others. */
  readonly #kept = new Map<string, Kept>();
  #chars = 0;

  keep(items: readonly Item[]): void {
    for (const item of items) {
      const chars = JSON.stringify(item).length;
      this.#kept.set(item.id, { item, chars });
      this.#chars += chars;
    }
    for (const id of this.#kept.keys()) {
      if (this.#kept.size <= ITEMS_MAX && this.#chars <= CHARS_MAX) return;
      this.#remove(id);
    }
  }

  find(id: string): Fields | undefined {
    const kept = this.#kept.get(id);
    if (!kept) return undefined;
    this.#kept.delete(id);
    this.#kept.set(id, kept);
    return { ...kept.item };
  }

  #remove(id: string): void {
    this.#chars -= this.#kept.get(id)?.chars ?? 0;
    this.#kept.delete(id);
  }
}
