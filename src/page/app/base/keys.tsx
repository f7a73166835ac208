/** Keyboard shortcuts of the whole page. */
import type { App } from "../context.ts";
import { useApp, useWords } from "../context.ts";
import type { Words } from "../words/index.ts";
import { Dialog } from "./dialog.tsx";

const KEYS = [
  ["Ctrl Shift O", "newChat"],
  ["Ctrl K", "search"],
  ["/", "write"],
  ["Enter", "send"],
  ["Shift Enter", "newLine"],
  ["Esc", "stop"],
  ["↑", "editLast"],
  ["Ctrl ,", "settings"],
  ["Ctrl Z", "undo"],
  ["?", "list"],
] as const satisfies readonly (readonly [keys: string, what: keyof Words["keyboard"]])[];

export function KeysDialog() {
  const { over } = useApp();
  const { keyboard: words } = useWords();
  return (
    <Dialog title={words.title} onClose={() => (over.value = undefined)}>
      <dl class="keys">
        {KEYS.map(([keys, what]) => (
          <>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd>{key}</kbd>
              ))}
            </dt>
            <dd>{words[what]}</dd>
          </>
        ))}
      </dl>
      <p class="quiet">{words.mac}</p>
    </Dialog>
  );
}

/**
 * True if a key belongs to an input method that composes text. Safari ends the composition before its last key event
 * (229).
 */
export const isComposing = (event: KeyboardEvent): boolean => event.isComposing || event.keyCode === 229;

/** On a touch screen, Enter begins a new line. */
export const isTouched = (): boolean => matchMedia("(hover: none) and (pointer: coarse)").matches;

/** Shortcuts of the page; keys of a dialog, a menu or a text field are left to these. */
export function onPageKey({ go, over, chats, isMenuOpen, notices }: App, event: KeyboardEvent): void {
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
  if (isCommand && key === "z" && !event.shiftKey && !hasText(event.target) && notices.undoLast()) {
    return event.preventDefault();
  }
  if (isCommand || event.altKey || isWriting(event.target)) return;
  if (key === "/") {
    event.preventDefault();
    focusComposer();
  } else if (key === "?") over.value = "keys";
}

/** True if the browser has text edits to undo. */
const hasText = (target: EventTarget | null): boolean =>
  (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) && target.value !== "";

const isWriting = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

const focusComposer = (): void => document.querySelector<HTMLElement>("#composer")?.focus();
