/** One message: what was said, what the model thought and called, and what can be done about it. */
import { useLayoutEffect } from "preact/hooks";
import { useApp } from "../context.ts";
import { Folded } from "../base/folded.tsx";
import { Icon } from "../base/icons.tsx";
import { memo } from "../base/memo.ts";
import { GrowingText, MarkdownText } from "../markdown/text.tsx";
import { rateOf } from "./answers.ts";
import { PictureView } from "./composer.tsx";
import { EditField } from "./edit.tsx";
import type { Live } from "./live.ts";
import { MessageActions } from "./message-actions.tsx";
import { useNear } from "./near.ts";
import { CallsOf, ResultFields } from "./tool-calls.tsx";
import type { Message } from "./tree.ts";

/** A message as its chat has it now. */
export interface MessageRow {
  readonly message: Message;
  /** The answer that is being made of it. */
  readonly live: Live | undefined;
  readonly isLast: boolean;
  /** False: it is plain text until somebody comes near. */
  readonly isDrawn: boolean;
  readonly branches: number;
  readonly isEditing: boolean;
}

interface MessageProps extends MessageRow {
  readonly onEdit: (id: string | undefined) => void;
  readonly onGrow: () => void;
}

/** Pieces that came at once say nothing of a rate. */
const RATE_FROM_MS = 100;

const WHO: Readonly<Record<Message["role"], string>> = { user: "You", assistant: "Answer", tool: "Tool" };

export const MessageItem = memo((props: MessageProps) => {
  const { message, live, isEditing, onEdit, isDrawn } = props;
  const { ref, isNear } = useNear<HTMLElement>(isDrawn);
  const { role } = message;
  const who = role === "assistant" && message.model ? message.model.replace(/:latest$/, "") : WHO[role];
  return (
    <article
      ref={ref}
      class={`message ${role}`}
      aria-label={`${who}${live ? ", being written" : ""}`}
      aria-busy={live !== undefined}
    >
      {isEditing ? (
        <EditField message={message} onDone={() => onEdit(undefined)} />
      ) : (
        <div class="body">
          {live ? <LiveContent live={live} onGrow={props.onGrow} /> : <Content message={message} isNear={isNear} />}
        </div>
      )}
      {message.state === "running" && !live && <p class="live-line">Another tab makes this answer.</p>}
      {message.state !== "running" && !isEditing && isNear && <Foot {...props} who={who} />}
    </article>
  );
});

function Content({ message, isNear }: { message: Message; isNear: boolean }) {
  const { role, content, thinking, calls = [], pictures = [], files = [] } = message;
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
        <Folded icon="file" title={name}>
          <pre tabIndex={0}>{text}</pre>
        </Folded>
      ))}
      {thinking && <Thoughts text={thinking} isOpen={false} />}
      {role === "tool" ? (
        <Folded icon="tool" title={`${message.toolName ?? "Tool"} gave back`}>
          <pre tabIndex={0}>{content}</pre>
        </Folded>
      ) : role === "user" || !isNear ? (
        content !== "" && <p class="plain">{content}</p>
      ) : (
        <MarkdownText text={content} />
      )}
      <CallsOf calls={calls} />
    </>
  );
}

function LiveContent({ live, onGrow }: { live: Live; onGrow: () => void }) {
  const { content, thinking, calls, wait, pieces, ms } = live.shown.value;
  useLayoutEffect(onGrow);
  const rate = ms < RATE_FROM_MS ? undefined : rateOf({ tokens: pieces, ms });
  return (
    <>
      {thinking !== "" && <Thoughts text={thinking} isOpen={content === ""} />}
      {content !== "" && <GrowingText text={content} />}
      <CallsOf calls={calls} />
      <p class="live-line">
        <span class="pulse" />
        {wait ? wait.text : content === "" && thinking === "" ? "Waiting for the model" : "Writing"}
        {wait?.fraction !== undefined && <progress aria-label={wait.text} max={1} value={wait.fraction} />}
        {rate !== undefined && <span class="quiet">{rate.toFixed(1)} tokens/s</span>}
      </p>
    </>
  );
}

function Thoughts({ text, isOpen }: { text: string; isOpen: boolean }) {
  return (
    <details class="folded thoughts" open={isOpen}>
      <summary>
        <Icon name="bulb" size={16} />
        {isOpen ? "Thinking" : "Thoughts"}
        <Icon name="down" size={14} />
      </summary>
      <p class="plain">{text}</p>
    </details>
  );
}

function Foot(props: MessageProps & { who: string }) {
  const { message, isLast, who } = props;
  const { chats } = useApp();
  const { role, state, error, calls = [], stats } = message;
  const goOn = (): void => void chats.answer(message.chat, { parent: message.parent, goOnWith: message });
  const again = (): void => void chats.answer(message.chat, { parent: message.parent });
  const canGoOn = isLast && role === "assistant" && message.content !== "" && calls.length === 0;
  return (
    <>
      {state === "failed" && (
        <div class="trouble" role="alert">
          <Icon name="warn" />
          <p>{error}</p>
          <div class="row">
            {canGoOn && <SmallButton label="Go on" onClick={goOn} />}
            {isLast && <SmallButton label="Try again" onClick={again} />}
          </div>
        </div>
      )}
      {(state === "stopped" || state === "length") && isLast && (
        <p class="ended">
          {state === "stopped" ? "Stopped." : "The answer reached its limit."}
          {canGoOn && <SmallButton label="Go on" onClick={goOn} />}
        </p>
      )}
      {isLast && role !== "assistant" && (
        <p class="ended">
          <SmallButton label="Get an answer" onClick={() => void chats.answer(message.chat, { parent: message.id })} />
        </p>
      )}
      {isLast && calls.length > 0 && <ResultFields message={message} />}
      <footer class="foot" data-last={isLast}>
        {role === "assistant" && (
          <span class="about">
            {who}
            {message.place === "page" && " · in this page"}
            {message.place === "webllm" && " · in this page, with WebLLM"}
            {stats && statsText(stats)}
          </span>
        )}
        <MessageActions {...props} />
      </footer>
    </>
  );
}

const SmallButton = ({ label, onClick }: { label: string; onClick: () => void }) => (
  <button type="button" class="button small" onClick={onClick}>
    {label}
  </button>
);

function statsText(stats: NonNullable<Message["stats"]>): string {
  const rate = rateOf(stats);
  const parts = [rate === undefined ? undefined : `${rate.toFixed(1)} tokens/s`, `${stats.tokens} tokens`];
  const cut = stats.wasCut ? ["the oldest messages were left out"] : [];
  return [...parts, ...cut].flatMap((part) => (part === undefined ? [] : [` · ${part}`])).join("");
}
