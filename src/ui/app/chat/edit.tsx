/** A message as text to change: in its place, or as a new branch beside it. */
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useApp } from "../context.ts";
import { isComposing } from "../base/keys.tsx";
import type { Message } from "./tree.ts";

export function EditField({ message, onDone }: { message: Message; onDone: () => void }) {
  const { chats } = useApp();
  const content = useSignal(message.content);
  const area = useRef<HTMLTextAreaElement>(null);
  const isQuestion = message.role === "user";
  useLayoutEffect(() => {
    const before = document.activeElement;
    area.current?.focus();
    area.current?.setSelectionRange(message.content.length, message.content.length);
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const save = (): void => {
    void chats.rewrite(message.chat, message, content.value);
    onDone();
  };
  const branch = (): void => {
    onDone();
    const { pictures = [], files = [] } = message;
    void chats.ask(message.chat, { content: content.value, pictures, files }, message.parent);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (isComposing(event)) return;
    if (event.key === "Escape") onDone();
    else if (event.key === "Enter" && !event.shiftKey && (isQuestion || event.ctrlKey || event.metaKey)) {
      (isQuestion ? branch : save)();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="edit">
      <textarea
        ref={area}
        aria-label={isQuestion ? "Your message" : "The answer"}
        value={content.value}
        onInput={(event) => (content.value = event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div class="row end">
        <button type="button" class="button" onClick={onDone}>
          Cancel
        </button>
        <button type="button" class={isQuestion ? "button" : "button primary"} onClick={save}>
          Save in place
        </button>
        {isQuestion && (
          <button type="button" class="button primary" onClick={branch}>
            Ask again
          </button>
        )}
      </div>
    </div>
  );
}
