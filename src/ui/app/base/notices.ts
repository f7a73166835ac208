/** Short messages that go away again. */
import { signal, type ReadonlySignal } from "@preact/signals";

interface Notice {
  readonly id: number;
  readonly text: string;
}

const SHOWN_MS = 15_000;

export interface Notices {
  readonly list: ReadonlySignal<readonly Notice[]>;
  say(text: string): void;
  close(id: number): void;
}

export function makeNotices(): Notices {
  const list = signal<readonly Notice[]>([]);
  let last = 0;
  const close = (id: number): void => void (list.value = list.peek().filter((each) => each.id !== id));
  return {
    list,
    close,
    say(text) {
      if (list.peek().some((each) => each.text === text)) return;
      const id = ++last;
      list.value = [...list.peek().slice(-3), { id, text }];
      setTimeout(() => close(id), SHOWN_MS);
    },
  };
}
