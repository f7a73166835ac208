/** Edits a message: in place, or as a new branch beside it. */
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { hugeLines } from "../base/huge-lines.ts";
import { isComposing, isTouched } from "../base/keys.tsx";
import type { Message } from "./tree.ts";
import { Button, typed } from "../base/controls.tsx";

interface EditProps {
  readonly message: Message;
  /** The initial text, after an undone discard. */
  readonly text?: string | undefined;
  readonly onDone: () => void;
  readonly onReopen: (text: string) => void;
}

export function EditField({ message, text = message.content, onDone, onReopen }: EditProps) {
  const { chats, notices } = useApp();
  const { chat: words, base } = useWords();
  const content = useSignal(text);
  const area = useRef<HTMLTextAreaElement>(null);
  const isQuestion = message.role === "user";
  useFieldFocus(area);
  const save = (): void => {
    const { content: before } = message;
    onDone();
    if (content.value === before) return;
    void chats.rewrite(message.chat, message.id, content.value);
    notices.offerUndo({ text: words.changed, undo: () => chats.rewrite(message.chat, message.id, before) });
  };
  const discard = (): void => {
    const { value } = content;
    onDone();
    if (value !== message.content) notices.offerUndo({ text: words.discarded, undo: () => onReopen(value) });
  };
  const branch = (): void => {
    onDone();
    const { pictures = [], files = [] } = message;
    const { value } = content;
    void chats.ask(message.chat, { content: value, pictures, files }, { parent: message.parent }).then((isSent) => {
      if (!isSent) onReopen(value);
    });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (isComposing(event)) return;
    const isCommand = event.ctrlKey || event.metaKey;
    if (event.key === "Escape") discard();
    else if (event.key === "Enter" && !event.shiftKey && ((isQuestion && !isTouched()) || isCommand)) {
      (isQuestion ? branch : save)();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="edit">
      <textarea
        ref={area}
        class={hugeLines(content.value)}
        aria-label={isQuestion ? words.yourMessage : words.theAnswer}
        {...typed(content)}
        onKeyDown={onKeyDown}
      />
      <div class="row end">
        <Button onClick={discard}>{base.cancel}</Button>
        <Button look={isQuestion ? "" : "primary"} onClick={save}>
          {base.save}
        </Button>
        {isQuestion && (
          <Button look="primary" onClick={branch}>
            {words.askAgain}
          </Button>
        )}
      </div>
    </div>
  );
}

/** Moves the focus into a field, and back once the field is gone. */
function useFieldFocus(area: { readonly current: HTMLTextAreaElement | null }): void {
  useLayoutEffect(() => {
    const before = document.activeElement;
    area.current?.focus();
    const end = area.current?.value.length ?? 0;
    area.current?.setSelectionRange(end, end);
    const article = area.current?.closest("article");
    return () => {
      if (before instanceof HTMLElement && before.isConnected && before !== document.body) return before.focus();
      requestAnimationFrame(() => {
        if (document.activeElement !== document.body) return; // the user has moved on
        const button = article?.querySelector<HTMLElement>("[data-edit]");
        const composer = isTouched() ? undefined : document.querySelector<HTMLElement>("#composer"); // no keyboard
        (button?.isConnected ? button : composer)?.focus();
      });
      return undefined;
    };
  }, []);
}
