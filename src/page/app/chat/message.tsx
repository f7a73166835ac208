/** One message: its text, the model's thinking and calls, and its actions. */
import { useApp, useWords } from "../context.ts";
import { Disclosure } from "../base/disclosure.tsx";
import { rateText } from "../base/format.ts";
import { hugeLines } from "../base/huge-lines.ts";
import { Icon } from "../base/icons.tsx";
import { memo } from "../base/memo.ts";
import { GrowingText, MarkdownText } from "../markdown/text.tsx";
import { rateOf } from "./answers.ts";
import { PictureView } from "./picture.tsx";
import { EditField } from "./edit.tsx";
import type { Live } from "./live.ts";
import { MessageActions } from "./message-actions.tsx";
import { useNear } from "./near.ts";
import { isOpen } from "../tools/calls.ts";
import { CallView } from "../tools/call-view.tsx";
import { ResultFields } from "./tool-calls.tsx";
import type { Message, ToolCall } from "./tree.ts";
import { shortName } from "../models/models.ts";
import type { Words } from "../words/index.ts";
import { SmallButton } from "../base/controls.tsx";

/** A message in the current state of its chat. */
export interface MessageRow {
  readonly message: Message;
  /** The running answer of this message. */
  readonly live: Live | undefined;
  readonly isLast: boolean;
  /** False: it is plain text until it is near the visible part. */
  readonly isDrawn: boolean;
  readonly branches: number;
  readonly editing: Editing | undefined;
}

/** A message being edited, and the initial text of its field if that differs. */
export interface Editing {
  readonly id: string;
  readonly text?: string;
}

export type OnEdit = (editing: Editing | undefined) => void;

/** Id of the element that shows a message. */
export const elementId = (message: string): string => `message-${message}`;

interface MessageProps extends MessageRow {
  readonly onEdit: OnEdit;
}

/** Minimum time for a meaningful rate. */
const RATE_FROM_MS = 100;

export const MessageItem = memo((props: MessageProps) => {
  const { message, live, editing, onEdit, isDrawn } = props;
  const { chat: words } = useWords();
  const { ref, isNear } = useNear<HTMLElement>(isDrawn);
  const { role } = message;
  const whoever = { user: words.you, assistant: words.answer, tool: words.tool }[role];
  const who = role === "assistant" && message.model ? shortName(message.model) : whoever;
  return (
    <article
      ref={ref}
      id={elementId(message.id)}
      class={`message ${role}`}
      aria-label={live ? words.beingWritten(who) : who}
      aria-busy={live !== undefined}
    >
      {editing ? (
        <EditField
          message={message}
          text={editing.text}
          onDone={() => onEdit(undefined)}
          onReopen={(text) => onEdit({ id: message.id, text })}
        />
      ) : (
        <div class="body">{live ? <LiveContent live={live} /> : <Content message={message} isNear={isNear} />}</div>
      )}
      {message.state === "running" && !live && <p class="live-line">{words.anotherTab}</p>}
      {message.state !== "running" && !editing && isNear && <Foot {...props} who={who} />}
    </article>
  );
});

function Content({ message, isNear }: { message: Message; isNear: boolean }) {
  const { role, content, thinking, calls = [], pictures = [], files = [] } = message;
  const { chat: words } = useWords();
  return (
    <>
      {pictures.length > 0 && (
        <div class="pictures">
          {pictures.map((picture) => (
            <PictureView picture={picture} />
          ))}
        </div>
      )}
      {files.map(({ name, text }) => (
        <Disclosure icon="file" title={name}>
          <pre tabIndex={0}>{text}</pre>
        </Disclosure>
      ))}
      {thinking && <Thoughts text={thinking} isOpen={false} />}
      {role === "tool" ? (
        <Disclosure icon="tool" title={words.result(message.toolName ?? words.tool)}>
          <pre tabIndex={0}>{content}</pre>
        </Disclosure>
      ) : role === "user" || !isNear ? (
        content !== "" && <p class={`plain ${hugeLines(content)}`.trimEnd()}>{content}</p>
      ) : (
        <MarkdownText text={content} />
      )}
      {calls.map((call, place) => (
        <CallView {...{ call, place, message }} />
      ))}
    </>
  );
}

function LiveContent({ live }: { live: Live }) {
  const { content, thinking, calls, wait, pieces, ms } = live.shown.value;
  const { chat: words } = useWords();
  const rate = ms < RATE_FROM_MS ? undefined : rateOf({ tokens: pieces, ms });
  return (
    <>
      {thinking !== "" && <Thoughts text={thinking} isOpen={content === ""} />}
      {content !== "" && <GrowingText text={content} />}
      {calls.map((call, place) => (
        <CallView {...{ call, place }} message={undefined} />
      ))}
      <p class="live-line">
        <span class="pulse" />
        {wait ? wait.text : content === "" && thinking === "" ? words.waiting : words.writing}
        {wait?.fraction !== undefined && <progress aria-label={wait.text} max={1} value={wait.fraction} />}
        {rate !== undefined && <span class="quiet">{words.rate(rateText(rate))}</span>}
      </p>
    </>
  );
}

function Thoughts({ text, isOpen }: { text: string; isOpen: boolean }) {
  const { chat: words } = useWords();
  return (
    <details class="folded thoughts" open={isOpen}>
      <summary>
        <Icon name="bulb" size={16} />
        {isOpen ? words.thinking : words.thoughts}
        <Icon name="down" size={14} />
      </summary>
      <p class="plain">{text}</p>
    </details>
  );
}

function Foot(props: MessageProps & { who: string }) {
  const { message, isLast, who } = props;
  const { chats } = useApp();
  const { chat: words } = useWords();
  const { role, state, error, calls = [], stats } = message;
  const goOn = (): void => void chats.answer(message.chat, { parent: message.parent, goOnWith: message });
  const again = (): void => void chats.answer(message.chat, { parent: message.parent });
  const canGoOn = isLast && role === "assistant" && message.content !== "" && calls.length === 0;
  return (
    <>
      {state === "failed" && (
        <div class="warning" role="alert">
          <Icon name="warn" />
          <p>{error}</p>
          <div class="row">
            {canGoOn && <SmallButton onClick={goOn}>{words.goOn}</SmallButton>}
            {isLast && <SmallButton onClick={again}>{words.tryAgain}</SmallButton>}
          </div>
        </div>
      )}
      {(state === "stopped" || state === "length") && isLast && (
        <p class="ended">
          {state === "stopped" ? words.stopped : words.limit}
          {canGoOn && <SmallButton onClick={goOn}>{words.goOn}</SmallButton>}
        </p>
      )}
      {isLast && (role !== "assistant" || isWhole(calls)) && (
        <p class="ended">
          <SmallButton onClick={() => void chats.answer(message.chat, { parent: message.id })}>
            {words.getAnswer}
          </SmallButton>
        </p>
      )}
      {isLast && !calls.some(isOpen) && calls.some(({ tool }) => !tool) && <ResultFields message={message} />}
      <footer class="foot" data-last={isLast}>
        {role === "assistant" && (
          <span class="about">
            {who}
            {message.place === "page" && ` · ${words.inPage}`}
            {message.place === "webllm" && ` · ${words.inWebLlm}`}
            {stats && statsText(words, stats)}
          </span>
        )}
        <MessageActions {...props} />
      </footer>
    </>
  );
}

/** True if every call has its result, and the model has not continued with them. */
const isWhole = (calls: readonly ToolCall[]): boolean =>
  calls.length > 0 && calls.every(({ result }) => result !== undefined);

function statsText(words: Words["chat"], stats: NonNullable<Message["stats"]>): string {
  const rate = rateOf(stats);
  const parts = [rate === undefined ? undefined : words.rate(rateText(rate)), words.tokens(stats.tokens)];
  const cut = stats.wasCut ? [words.wasCut] : [];
  return [...parts, ...cut].flatMap((part) => (part === undefined ? [] : [` · ${part}`])).join("");
}
