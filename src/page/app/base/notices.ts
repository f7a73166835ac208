/** Short messages at the foot of the page, some with a button that restores a deleted item. */
import { signal, type ReadonlySignal } from "@preact/signals";

interface Notice {
  readonly id: number;
  readonly text: string;
  /** Present: the action can still be undone. */
  readonly undo?: () => void;
}

const SHOWN_MS = 5000;
const UNDO_MS = 10_000;
const NOTICES_MAX = 4;

interface Deletion {
  readonly text: string;
  /** Restores the deleted item. */
  readonly undo: () => unknown;
  /** Deletes for good, after 10 seconds, or when the notice or the tab is closed. Absent: it is deleted already. */
  readonly finish?: () => unknown;
}

export interface Notices {
  readonly list: ReadonlySignal<readonly Notice[]>;
  say(text: string): void;
  /** Announces a deletion, with a button that undoes it for 10 seconds. */
  offerUndo(deletion: Deletion): void;
  /** Undoes the last deletion that can still be undone. Returns false if there is no such deletion. */
  undoLast(): boolean;
  close(id: number): void;
}

/** @param tab fires an event when the page is left */
export function makeNotices(tab: Pick<Window, "addEventListener">): Notices {
  const list = signal<readonly Notice[]>([]);
  /** the final action of each notice */
  const pending = new Map<number, () => unknown>();
  let last = 0;
  const remove = (id: number): void => {
    pending.delete(id);
    list.value = list.peek().filter((each) => each.id !== id);
  };
  const close = (id: number): void => {
    const finish = pending.get(id);
    remove(id);
    if (finish) attempt(finish);
  };
  const show = (notice: Notice, forMs: number): void => {
    const shown = list.peek();
    for (const { id } of shown.slice(0, Math.max(0, shown.length + 1 - NOTICES_MAX))) close(id);
    list.value = [...list.peek(), notice];
    setTimeout(() => close(notice.id), forMs);
  };
  const say = (text: string): void => {
    if (!list.peek().some((each) => each.text === text)) show({ id: ++last, text }, SHOWN_MS);
  };
  const attempt = (work: () => unknown): void => {
    const report = (error: unknown): void => say(error instanceof Error ? error.message : String(error));
    void (async () => work())().catch(report);
  };
  tab.addEventListener("pagehide", () => {
    for (const { id } of list.peek()) close(id);
  });
  return {
    list,
    close,
    say,
    offerUndo({ text, undo, finish = () => {} }) {
      const id = ++last;
      pending.set(id, finish);
      show(
        {
          id,
          text,
          undo: () => {
            remove(id);
            attempt(undo);
          },
        },
        UNDO_MS,
      );
    },
    undoLast() {
      const undo = list.peek().findLast((each) => each.undo)?.undo;
      undo?.();
      return undo !== undefined;
    },
  };
}
