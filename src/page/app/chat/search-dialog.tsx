/** Searches all chats while the user types. */
import { useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "../base/dialog.tsx";
import { agoText } from "../base/format.ts";
import { Icon } from "../base/icons.tsx";
import { isComposing } from "../base/keys.tsx";
import { findChats, type Found } from "./search.ts";
import { typed } from "../base/controls.tsx";

export function SearchDialog() {
  const { over, db, chats, go } = useApp();
  const { chats: texts, base } = useWords();
  const words = useSignal("");
  const found = useSignal<readonly Found[]>([]);
  const chosen = useSignal(0);
  const asked = useRef(0);
  useSignalEffect(() => {
    const [text, list] = [words.value, chats.list.value];
    const number = ++asked.current;
    void findChats({ db, chats: list }, text).then((results) => {
      if (number !== asked.current) return; // more text was typed meanwhile
      found.value = text.trim() === "" ? list.slice(0, 8).map(asFound) : results;
      chosen.value = 0;
    });
  });
  const close = (): void => void (over.value = undefined);
  const open = ({ chat, message }: Found): void => {
    close();
    go({ view: "chat", id: chat.id });
    if (message !== undefined) void chats.reveal(chat.id, message);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (isComposing(event)) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = found.value[chosen.value];
    if (step !== undefined) chosen.value = Math.max(0, Math.min(found.value.length - 1, chosen.value + step));
    else if (event.key === "Enter" && at) open(at);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title={texts.search} kind="palette" onClose={close}>
      <div class="palette-field">
        <Icon name="search" />
        <input
          role="combobox"
          list={undefined}
          aria-label={texts.search}
          aria-expanded="true"
          aria-controls="search-results"
          aria-activedescendant={found.value.length > 0 ? `found-${chosen.value}` : undefined}
          placeholder={texts.search}
          {...typed(words)}
          onKeyDown={onKeyDown}
        />
      </div>
      <div class="palette-list" role="listbox" id="search-results" aria-label={texts.results}>
        {found.value.map((each, i) => (
          <div
            role="option"
            id={`found-${i}`}
            aria-selected={i === chosen.value}
            onClick={() => open(each)}
            onPointerMove={() => (chosen.value = i)}
          >
            <Result found={each} />
          </div>
        ))}
      </div>
      {found.value.length === 0 && <p class="quiet palette-none">{base.noMatches}</p>}
    </Dialog>
  );
}

const Result = ({ found }: { found: Found }) => (
  <>
    <strong>{found.message === undefined ? <Marked found={found} /> : found.chat.title}</strong>
    <time>{agoText(found.chat.updated)}</time>
    {found.message !== undefined && (
      <span>
        <Marked found={found} />
      </span>
    )}
  </>
);

const asFound = (chat: Found["chat"]): Found => ({ chat, around: chat.title, from: 0, to: 0 });

function Marked({ found: { around, from, to } }: { found: Found }) {
  return (
    <>
      {around.slice(0, from)}
      {to > from && <mark>{around.slice(from, to)}</mark>}
      {around.slice(to)}
    </>
  );
}
