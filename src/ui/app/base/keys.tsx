/** What the keyboard does, everywhere in the page. */
import type { App } from "../context.ts";
import { useApp } from "../context.ts";
import { Dialog } from "./dialog.tsx";

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["Ctrl Shift O", "New chat"],
  ["Ctrl K", "Search in chats"],
  ["/", "Write a message"],
  ["Enter", "Send"],
  ["Shift Enter", "New line"],
  ["Esc", "Stop the answer, or close what is open"],
  ["↑", "Edit your last message, where nothing is written yet"],
  ["Ctrl ,", "Settings of this chat"],
  ["?", "This list"],
];

export function KeysDialog() {
  const { over } = useApp();
  return (
    <Dialog title="Keyboard" onClose={() => (over.value = undefined)}>
      <dl class="keys">
        {KEYS.map(([keys, what]) => (
          <>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <p class="quiet">On a Mac, Ctrl is ⌘.</p>
    </Dialog>
  );
}

/** Whether a key belongs to an input method that composes text. Safari has ended that when the last key comes (229). */
export const isComposing = (event: KeyboardEvent): boolean => event.isComposing || event.keyCode === 229;

/** Keys of the page as a whole; those of a dialog, a menu or a text field are theirs. */
export function onPageKey({ go, over, chats, isMenuOpen }: App, event: KeyboardEvent): void {
  if (isComposing(event)) return;
  const isCommand = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (isCommand && event.shiftKey && key === "o") {
    event.preventDefault();
    go({ view: "chat" });
    return focusComposer();
  }
  if (isCommand && key === "k") {
    event.preventDefault();
    over.value = "search";
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  if (key === "escape") {
    if (isMenuOpen.value) isMenuOpen.value = false;
    else if (!event.defaultPrevented) chats.stop(chats.open.value?.chat.value.id ?? "");
    return;
  }
  if (isCommand || event.altKey || isWriting(event.target)) return;
  if (key === "/") {
    event.preventDefault();
    focusComposer();
  } else if (key === "?") over.value = "keys";
}

const isWriting = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

const focusComposer = (): void => document.querySelector<HTMLElement>("#composer")?.focus();
