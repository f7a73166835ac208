/** The composer: text, attachments, the model, and the button that sends or stops. */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { hugeLines } from "../base/huge-lines.ts";
import { isComposing, isTouched } from "../base/keys.tsx";
import { Icon } from "../base/icons.tsx";
import { Attachments, useAttached } from "./attached.tsx";
import type { NewMessage, OpenChat } from "./chat-types.ts";
import { ContextMeter } from "./meter.tsx";
import { ModelMenu } from "./model-menu.tsx";
import { ModelWarning, useModelWarning } from "./model-warning.tsx";
import { PromptMenu, useCompletion } from "./prompt-choice.tsx";
import { pathTo, type Chat } from "./tree.ts";
import type { Suggestion } from "./welcome.tsx";
import { IconButton } from "../base/controls.tsx";

interface ComposerProps {
  /** Undefined: a new chat. */
  readonly chat: Chat | undefined;
  readonly model: string;
  readonly place: Chat["place"];
  readonly onModel: (model: string, place: Chat["place"]) => void;
  /** Returns false if it was not sent. */
  readonly onSend: (draft: NewMessage) => Promise<boolean>;
  readonly onEditLast: () => void;
  /** Used when it is set. */
  readonly suggestion: Signal<Suggestion | undefined>;
}

const DRAFT = "hearth-draft-";

export function Composer({ chat, model, place, onModel, onSend, onEditLast, suggestion }: ComposerProps) {
  const { chats, models, session, toAttach } = useApp();
  const draftKey = DRAFT + (chat?.id ?? "new");
  const content = useSignal(session.getItem(draftKey) ?? "");
  const attached = useAttached(draftKey);
  const { pictures, files, reading, take } = attached;
  const running = chat ? chats.running.value.get(chat.id) : undefined;
  const isEmpty = content.value.trim() === "" && files.value.length === 0 && pictures.value.length === 0;
  const isReading = reading.value.length > 0;
  const warning = useModelWarning(model, place, pictures.value.length > 0 || hasPictures(chats.open.value, chat));
  const canSend = !isEmpty && model !== "" && !warning && !isReading;

  const send = (): void => {
    if (!canSend || running) return;
    const kept = files.value;
    const draft = {
      content: content.value,
      pictures: pictures.value,
      files: kept.map(({ name, text }) => ({ name, text })),
    };
    [content.value, pictures.value, files.value] = ["", [], []];
    session.removeItem(draftKey);
    void onSend(draft).then((isSent) => {
      if (!isSent) [content.value, pictures.value, files.value] = [draft.content, draft.pictures, kept];
    });
  };
  useEffect(() => {
    const dropped = toAttach.value;
    if (dropped.length === 0) return;
    toAttach.value = [];
    void take(dropped);
  }, [toAttach.value]);
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <Attachments attached={attached} {...{ model, place }} options={chat?.options ?? {}} />
      {warning && (
        <ModelWarning
          {...{ warning, model }}
          onUse={(name) => onModel(name, models.placeOf(name, warning.kind === "cannotSee" ? "server" : place))}
          onRemovePictures={pictures.value.length > 0 ? () => (pictures.value = []) : undefined}
        />
      )}
      <Writing
        content={content}
        onSend={send}
        onFiles={(list) => void take(list)}
        onEditLast={onEditLast}
        onKeep={() => session.setItem(draftKey, content.value)}
        suggestion={suggestion}
      />
      <div class="composer-row">
        <AttachButton onFiles={(list) => void take(list)} suggestion={suggestion} />
        <PromptMenu onChoose={(text) => (suggestion.value = { text })} />
        <ModelMenu model={model} place={place} onChoose={onModel} />
        <span class="grow" />
        {chat && <ContextMeter chat={chat} />}
        <SendButton stop={running?.stop} isReady={canSend} />
      </div>
    </form>
  );
}

/** True if the shown part of the chat has pictures, which would be sent to the model again. */
const hasPictures = (open: OpenChat | undefined, chat: Chat | undefined): boolean =>
  open !== undefined &&
  open.chat.value.id === chat?.id &&
  pathTo(open.messages.value, open.chat.value.leaf).some(({ pictures = [] }) => pictures.length > 0);

/** @param stop ends the running answer, if any */
function SendButton({ stop, isReady }: { stop: (() => void) | undefined; isReady: boolean }) {
  const { composer: words } = useWords();
  if (stop) {
    return (
      <button type="button" class="send stop" aria-label={words.stop} title={`${words.stop} (Esc)`} onClick={stop}>
        <Icon name="stop" size={20} />
      </button>
    );
  }
  return (
    <button type="submit" class="send" aria-label={words.send} title={`${words.send} (Enter)`} disabled={!isReady}>
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
  readonly suggestion: Signal<Suggestion | undefined>;
}

/**
 * Formats that an office program puts on the clipboard beside a picture of the text; a picture copied from a page has
 * no plain text.
 */
const FORMATTED = ["text/plain", "text/html"] as const;

function Writing({ content, onSend, onFiles, onEditLast, onKeep, suggestion }: WritingProps) {
  const { composer: words } = useWords();
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (!isTouched()) area.current?.focus();
  }, []);
  useEffect(() => {
    if (!suggestion.value) return;
    content.value = suggestion.value.text;
    onKeep();
    area.current?.focus();
  }, [suggestion.value]);
  const completion = useCompletion(content, (text) => {
    content.value = text;
    onKeep();
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (isComposing(event) || completion.onKeyDown(event)) return;
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
    const huge = hugeLines(event.clipboardData?.getData("text/plain") ?? "");
    if (huge !== "" && area.current) area.current.className = huge; // before the browser lays it out
    if (files.length === 0 || FORMATTED.every((type) => types.includes(type))) return;
    event.preventDefault();
    onFiles(files);
  };
  return (
    <>
      {completion.popup}
      <textarea
        ref={area}
        id="composer"
        class={hugeLines(content.value)}
        {...completion.field}
        rows={1}
        aria-label={words.message}
        placeholder={words.placeholder}
        value={content.value}
        onInput={(event) => {
          content.value = event.currentTarget.value;
          onKeep();
        }}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
      />
    </>
  );
}

type AttachProps = Pick<WritingProps, "onFiles" | "suggestion">;

function AttachButton({ onFiles, suggestion }: AttachProps) {
  const input = useRef<HTMLInputElement>(null);
  const { composer: words } = useWords();
  useEffect(() => {
    if (suggestion.value?.wantsFile) input.current?.click();
  }, [suggestion.value]);
  return (
    <>
      <IconButton icon="clip" label={words.attach} onClick={() => input.current?.click()} />
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={words.files}
        onChange={(event) => {
          onFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}
