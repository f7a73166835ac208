/** Where somebody writes: text, what they attach, the model, and the button that sends, or stops. */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useApp } from "../context.ts";
import { isComposing } from "../base/keys.tsx";
import { Icon } from "../base/icons.tsx";
import { attach } from "./attachments.ts";
import type { Draft } from "./chat-types.ts";
import { ContextMeter } from "./meter.tsx";
import { ModelChoice } from "./model-choice.tsx";
import type { Chat, Picture, TextFile } from "./tree.ts";

interface ComposerProps {
  /** Undefined: a chat that has not begun. */
  readonly chat: Chat | undefined;
  readonly model: string;
  readonly place: Chat["place"];
  readonly onModel: (model: string, place: Chat["place"]) => void;
  /** Gives false where nothing was sent. */
  readonly onSend: (draft: Draft) => Promise<boolean>;
  readonly onEditLast: () => void;
}

const DRAFT = "hearth-draft-";

export function Composer({ chat, model, place, onModel, onSend, onEditLast }: ComposerProps) {
  const { chats, notices, session } = useApp();
  const kept = DRAFT + (chat?.id ?? "new");
  const content = useSignal(session.getItem(kept) ?? "");
  const pictures = useSignal<readonly Picture[]>([]);
  const files = useSignal<readonly TextFile[]>([]);
  const isOver = useSignal(false);
  const running = chat ? chats.running.value.get(chat.id) : undefined;
  const isEmpty = content.value.trim() === "" && files.value.length === 0 && pictures.value.length === 0;

  const take = async (list: Iterable<File>): Promise<void> => {
    for (const file of list) {
      try {
        const attached = await attach(file);
        if ("picture" in attached) pictures.value = [...pictures.value, attached.picture];
        else files.value = [...files.value, attached.file];
      } catch (error) {
        notices.say(error instanceof Error ? error.message : String(error));
      }
    }
  };
  const send = (): void => {
    if (isEmpty || running || model === "") return;
    const draft = { content: content.value, pictures: pictures.value, files: files.value };
    [content.value, pictures.value, files.value] = ["", [], []];
    session.removeItem(kept);
    void onSend(draft).then((isSent) => {
      if (!isSent) [content.value, pictures.value, files.value] = [draft.content, draft.pictures, draft.files];
    });
  };
  const onDrop = (event: DragEvent): void => {
    isOver.value = false;
    if (!hasFiles(event)) return;
    event.preventDefault();
    void take(event.dataTransfer?.files ?? []);
  };
  return (
    <form
      class="composer"
      data-over={isOver.value}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={() => (isOver.value = false)}
      onDrop={onDrop}
    >
      <Attachments pictures={pictures} files={files} />
      <Writing
        content={content}
        onSend={send}
        onFiles={(list) => void take(list)}
        onEditLast={onEditLast}
        onKeep={() => session.setItem(kept, content.value)}
      />
      <div class="composer-row">
        <AttachButton onFiles={(list) => void take(list)} />
        <ModelChoice model={model} place={place} onChoose={onModel} />
        <span class="grow" />
        {chat && <ContextMeter chat={chat} />}
        <SendButton stop={running?.stop} isReady={!isEmpty && model !== ""} />
      </div>
    </form>
  );
}

/** Else it is text, which the field takes by itself. */
const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes("Files") ?? false;

/** @param stop ends the answer that is being made, where one is */
function SendButton({ stop, isReady }: { stop: (() => void) | undefined; isReady: boolean }) {
  if (stop) {
    return (
      <button type="button" class="send stop" aria-label="Stop" title="Stop (Esc)" onClick={stop}>
        <Icon name="stop" size={20} />
      </button>
    );
  }
  return (
    <button type="submit" class="send" aria-label="Send" title="Send (Enter)" disabled={!isReady}>
      <Icon name="send" size={20} />
    </button>
  );
}

interface WritingProps {
  readonly content: Signal<string>;
  readonly onSend: () => void;
  readonly onFiles: (files: Iterable<File>) => void;
  readonly onEditLast: () => void;
  readonly onKeep: () => void;
}

/** Text of an office program, which puts a picture of it beside it; one copied from a page has no plain text. */
const FORMATTED = ["text/plain", "text/html"] as const;

/** On a screen that is touched, Enter begins a new line. */
const isTouched = (): boolean => matchMedia("(hover: none) and (pointer: coarse)").matches;

function Writing({ content, onSend, onFiles, onEditLast, onKeep }: WritingProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (!isTouched()) area.current?.focus();
  }, []);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (isComposing(event)) return;
    if (event.key === "Enter" && !event.shiftKey && !isTouched()) {
      event.preventDefault();
      onSend();
    } else if (event.key === "ArrowUp" && content.value === "") {
      event.preventDefault();
      onEditLast();
    }
  };
  const onPaste = (event: ClipboardEvent): void => {
    const { files = [], types = [] } = event.clipboardData ?? {};
    if (files.length === 0 || FORMATTED.every((type) => types.includes(type))) return;
    event.preventDefault();
    onFiles(files);
  };
  return (
    <textarea
      ref={area}
      id="composer"
      rows={1}
      aria-label="Message"
      placeholder="Write a message"
      value={content.value}
      onInput={(event) => {
        content.value = event.currentTarget.value;
        onKeep();
      }}
      onKeyDown={onKeyDown}
      onPaste={onPaste}
    />
  );
}

function AttachButton({ onFiles }: { onFiles: (files: Iterable<File>) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        class="icon-button"
        aria-label="Attach pictures or text files"
        title="Attach pictures or text files"
        onClick={() => input.current?.click()}
      >
        <Icon name="clip" />
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files"
        onChange={(event) => {
          onFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

interface AttachmentsProps {
  readonly pictures: Signal<readonly Picture[]>;
  readonly files: Signal<readonly TextFile[]>;
}

function Attachments({ pictures, files }: AttachmentsProps) {
  if (pictures.value.length === 0 && files.value.length === 0) return null;
  return (
    <ul class="attachments" aria-label="Attached">
      {pictures.value.map((picture) => (
        <li>
          <PictureView picture={picture} />
          <RemoveButton
            label="picture"
            onClick={() => (pictures.value = pictures.value.filter((each) => each !== picture))}
          />
        </li>
      ))}
      {files.value.map((file) => (
        <li class="chip">
          <Icon name="file" size={16} />
          <span>{file.name}</span>
          <RemoveButton label={file.name} onClick={() => (files.value = files.value.filter((each) => each !== file))} />
        </li>
      ))}
    </ul>
  );
}

const RemoveButton = ({ label, onClick }: { label: string; onClick: () => void }) => (
  <button type="button" class="icon-button small" aria-label={`Remove ${label}`} onClick={onClick}>
    <Icon name="close" size={14} />
  </button>
);

export const PictureView = ({ picture: { type, base64 } }: { picture: Picture }) => (
  <img class="picture" src={`data:${type};base64,${base64}`} alt="Attached by you" />
);
