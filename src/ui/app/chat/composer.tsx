/** Where somebody writes: text, what they attach, the model, and the button that sends, or stops. */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { isComposing } from "../base/keys.tsx";
import { reasonOf } from "../base/reason.ts";
import { Icon } from "../base/icons.tsx";
import { attach } from "./attachments.ts";
import type { Draft, OpenChat } from "./chat-types.ts";
import { ContextMeter } from "./meter.tsx";
import { ModelMenu } from "./model-menu.tsx";
import { ModelTrouble, useModelTrouble } from "./model-trouble.tsx";
import { PromptMenu, useCompletion } from "./prompt-choice.tsx";
import { pathTo, type Chat, type Picture, type TextFile } from "./tree.ts";
import type { Suggestion } from "./welcome.tsx";

interface ComposerProps {
  /** Undefined: a chat that has not begun. */
  readonly chat: Chat | undefined;
  readonly model: string;
  readonly place: Chat["place"];
  readonly onModel: (model: string, place: Chat["place"]) => void;
  /** Gives false where nothing was sent. */
  readonly onSend: (draft: Draft) => Promise<boolean>;
  readonly onEditLast: () => void;
  /** Taken when it is set. */
  readonly suggestion: Signal<Suggestion | undefined>;
}

const DRAFT = "hearth-draft-";

export function Composer({ chat, model, place, onModel, onSend, onEditLast, suggestion }: ComposerProps) {
  const { chats, models, session, toAttach } = useApp();
  const kept = DRAFT + (chat?.id ?? "new");
  const content = useSignal(session.getItem(kept) ?? "");
  const { pictures, files, take } = useAttached();
  const running = chat ? chats.running.value.get(chat.id) : undefined;
  const isEmpty = content.value.trim() === "" && files.value.length === 0 && pictures.value.length === 0;
  const trouble = useModelTrouble(model, place, pictures.value.length > 0 || hasPictures(chats.open.value, chat));
  const canSend = !isEmpty && model !== "" && !trouble;

  const send = (): void => {
    if (!canSend || running) return;
    const draft = { content: content.value, pictures: pictures.value, files: files.value };
    [content.value, pictures.value, files.value] = ["", [], []];
    session.removeItem(kept);
    void onSend(draft).then((isSent) => {
      if (!isSent) [content.value, pictures.value, files.value] = [draft.content, draft.pictures, draft.files];
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
      <Attachments pictures={pictures} files={files} />
      {trouble && (
        <ModelTrouble
          {...{ trouble, model }}
          onUse={(name) => onModel(name, models.placeOf(name, trouble.kind === "cannotSee" ? "server" : place))}
          onRemovePictures={pictures.value.length > 0 ? () => (pictures.value = []) : undefined}
        />
      )}
      <Writing
        content={content}
        onSend={send}
        onFiles={(list) => void take(list)}
        onEditLast={onEditLast}
        onKeep={() => session.setItem(kept, content.value)}
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

/** What is attached, and what takes more of it. */
function useAttached() {
  const { notices } = useApp();
  const words = useWords();
  const pictures = useSignal<readonly Picture[]>([]);
  const files = useSignal<readonly TextFile[]>([]);
  const take = async (list: Iterable<File>): Promise<void> => {
    for (const file of list) {
      try {
        const attached = await attach(file, words.attachments);
        if ("picture" in attached) pictures.value = [...pictures.value, attached.picture];
        else files.value = [...files.value, attached.file];
      } catch (error) {
        notices.say(reasonOf(words, error));
      }
    }
  };
  return { pictures, files, take };
}

/** Whether the part of the chat that is shown has pictures, which a model would be given again. */
const hasPictures = (open: OpenChat | undefined, chat: Chat | undefined): boolean =>
  open !== undefined &&
  open.chat.value.id === chat?.id &&
  pathTo(open.messages.value, open.chat.value.leaf).some(({ pictures = [] }) => pictures.length > 0);

/** @param stop ends the answer that is being made, where one is */
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

/** Text of an office program, which puts a picture of it beside it; one copied from a page has no plain text. */
const FORMATTED = ["text/plain", "text/html"] as const;

/** On a screen that is touched, Enter begins a new line. */
const isTouched = (): boolean => matchMedia("(hover: none) and (pointer: coarse)").matches;

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
      <button
        type="button"
        class="icon-button"
        aria-label={words.attach}
        title={words.attach}
        onClick={() => input.current?.click()}
      >
        <Icon name="clip" />
      </button>
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

interface AttachmentsProps {
  readonly pictures: Signal<readonly Picture[]>;
  readonly files: Signal<readonly TextFile[]>;
}

function Attachments({ pictures, files }: AttachmentsProps) {
  const { notices } = useApp();
  const { composer: words } = useWords();
  if (pictures.value.length === 0 && files.value.length === 0) return null;
  const remove = <T,>(list: Signal<readonly T[]>, item: T, name: string): void => {
    list.value = list.value.filter((each) => each !== item);
    notices.offerUndo({ text: words.removed(name), undo: () => (list.value = [...list.value, item]) });
  };
  return (
    <ul class="attachments" aria-label={words.attachments}>
      {pictures.value.map((picture) => (
        <li>
          <PictureView picture={picture} />
          <RemoveButton label={words.remove(words.picture)} onClick={() => remove(pictures, picture, words.picture)} />
        </li>
      ))}
      {files.value.map((file) => (
        <li class="chip">
          <Icon name="file" size={16} />
          <span>{file.name}</span>
          <RemoveButton label={words.remove(file.name)} onClick={() => remove(files, file, file.name)} />
        </li>
      ))}
    </ul>
  );
}

const RemoveButton = ({ label, onClick }: { label: string; onClick: () => void }) => (
  <button type="button" class="icon-button small" aria-label={label} onClick={onClick}>
    <Icon name="close" size={14} />
  </button>
);

export const PictureView = ({ picture: { type, base64 } }: { picture: Picture }) => (
  <img class="picture" src={`data:${type};base64,${base64}`} alt={useWords().chat.attached} />
);
