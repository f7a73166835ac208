/** Folders and saved prompts of this browser. Every change is saved and announced to other tabs. */
import { signal, type ReadonlySignal } from "@preact/signals";
import { makeId } from "../base/ids.ts";
import type { ChatDatabase } from "./database.ts";
import type { Folder, Prompt, RecordKind, Records } from "./library-types.ts";
import type { Chat } from "./tree.ts";

interface LibraryParts {
  readonly db: Pick<ChatDatabase, "records" | "saveRecords" | "removeRecord">;
  readonly channel: BroadcastChannel | undefined;
  /** Called with an error of saving. */
  readonly onError: (error: unknown) => void;
}

type Lists = { readonly [K in RecordKind]: readonly Records[K][] };

const byName = (a: { name: string }, b: { name: string }): number => a.name.localeCompare(b.name);

export class Library {
  readonly #parts: LibraryParts;
  readonly #lists = signal<Lists>({ folders: [], prompts: [] });

  constructor(parts: LibraryParts) {
    this.#parts = parts;
    parts.channel?.addEventListener("message", () => void this.load());
  }

  /** Sorted by name. */
  get lists(): ReadonlySignal<Lists> {
    return this.#lists;
  }

  async load(): Promise<void> {
    const { db } = this.#parts;
    const [folders, prompts] = await Promise.all([db.records("folders"), db.records("prompts")]);
    this.#lists.value = { folders: folders.toSorted(byName), prompts: prompts.toSorted(byName) };
  }

  async addFolder(name: string): Promise<Folder> {
    const folder = { id: makeId(), name: name.slice(0, 200) };
    await this.save("folders", [folder]);
    return folder;
  }

  async addPrompt(kind: Prompt["kind"], name: string, text: string): Promise<void> {
    await this.save("prompts", [{ id: makeId(), kind, name: name.slice(0, 200), text }]);
  }

  /** Saves before it shows a change, because the user may close the tab at once. */
  async save<K extends RecordKind>(kind: K, records: readonly Records[K][]): Promise<void> {
    if (records.length === 0) return;
    await this.#keep(() => this.#parts.db.saveRecords(kind, records));
    const ids = new Set(records.map(({ id }) => id));
    const kept = this.#lists.peek()[kind].filter(({ id }) => !ids.has(id));
    this.#show(kind, [...kept, ...records].toSorted(byName));
  }

  /** Returns a function that restores it. */
  async remove<K extends RecordKind>(kind: K, record: Records[K]): Promise<() => Promise<void>> {
    await this.#keep(() => this.#parts.db.removeRecord(kind, record.id));
    const left = this.#lists.peek()[kind].filter(({ id }) => id !== record.id);
    this.#show(kind, left);
    return () => this.save(kind, [record]);
  }

  /** Adds the records of a file. Folders of one name are merged; returns the chats with their final folders. */
  async takeIn(file: {
    readonly chats: readonly Chat[];
    readonly folders: readonly Folder[];
    readonly prompts: readonly Prompt[];
  }): Promise<Chat[]> {
    const { folders, prompts } = this.#lists.peek();
    const known = new Map(folders.map(({ id, name }) => [name, id]));
    const folderIds = new Map<string, string>();
    const fresh: Folder[] = [];
    for (const folder of file.folders) {
      const there = known.get(folder.name);
      folderIds.set(folder.id, there ?? folder.id);
      if (there !== undefined) continue;
      known.set(folder.name, folder.id);
      fresh.push(folder);
    }
    const isKnown = (a: Prompt): boolean =>
      prompts.some((b) => a.kind === b.kind && a.name === b.name && a.text === b.text);
    await this.save("folders", fresh);
    await this.save(
      "prompts",
      file.prompts.filter((each) => !isKnown(each)),
    );
    return file.chats.map((chat) => (chat.folder ? { ...chat, folder: folderIds.get(chat.folder) ?? null } : chat));
  }

  #show(kind: RecordKind, list: readonly Records[RecordKind][]): void {
    this.#lists.value = { ...this.#lists.peek(), [kind]: list };
  }

  async #keep(write: () => Promise<void>): Promise<void> {
    try {
      await write();
      this.#parts.channel?.postMessage("changed");
    } catch (error) {
      this.#parts.onError(error);
    }
  }
}
