/** Simultaneous answers of several models to one question, until one is chosen. */
import { useApp, useWords } from "../context.ts";
import { shortName } from "../models/models.ts";
import type { Running } from "./chat-types.ts";
import { MessageItem, type Editing, type OnEdit } from "./message.tsx";
import type { Message } from "./tree.ts";
import { SmallButton } from "../base/controls.tsx";

interface ColumnsProps {
  readonly messages: readonly Message[];
  readonly running: Running | undefined;
  readonly editing: Editing | undefined;
  readonly onEdit: OnEdit;
}

export function Columns({ messages, running, editing, onEdit }: ColumnsProps) {
  const { chats } = useApp();
  const { compare: words } = useWords();
  return (
    <div class="columns" role="group" aria-label={words.title}>
      {messages.map((message) => (
        <div class="column" key={message.id}>
          <MessageItem
            message={message}
            live={running?.lives.get(message.id)}
            isLast
            isDrawn
            branches={1}
            editing={editing?.id === message.id ? editing : undefined}
            onEdit={onEdit}
          />
          {!running && (
            <SmallButton
              aria-label={words.goOnWith(shortName(message.model ?? ""))}
              onClick={() => void chats.settle(message.chat, message)}
            >
              {words.goOn}
            </SmallButton>
          )}
        </div>
      ))}
    </div>
  );
}
