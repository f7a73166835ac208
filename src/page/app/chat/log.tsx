/** The messages of a chat. */
import { useComputed, useSignal } from "@preact/signals";
import { Component } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../base/icons.tsx";
import { useApp, useWords } from "../context.ts";
import type { OpenChat } from "./chat-types.ts";
import { Columns } from "./columns.tsx";
import { useEnd } from "./end.ts";
import { nextFrame } from "./live.ts";
import { elementId, MessageItem, type Editing, type MessageRow, type OnEdit } from "./message.tsx";
import { makeWatch, WatchContext, type Watch } from "./near.ts";
import { branchCounts, branchKey, columnsOf, pathTo } from "./tree.ts";

/** Messages at the end that are rendered at once. */
const FIRST_DRAWN = 8;
/** Messages that are compared together. */
const CHUNK = 40;
/** Chunks rendered per frame while a chat opens, from its end: each takes a few milliseconds. */
const CHUNKS_A_FRAME = 2;

export function ChatLog({ open, editing, onEdit }: { open: OpenChat; editing: Editing | undefined; onEdit: OnEdit }) {
  const { chats } = useApp();
  const { chat: words } = useWords();
  const root = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const watch = useWatch(root);
  const { isAtEnd, toEnd, onScroll } = useEnd(root, content);
  const { whole, columns, path } = useShownPath(open);
  const counts = useComputed(() => branchCounts(open.messages.value));
  const { id } = open.chat.value;
  const running = chats.running.value.get(id);

  const isRunning = running !== undefined;
  useLayoutEffect(() => void (isRunning && toEnd()), [isRunning]); // the user asked for it here
  const last = whole.value.length - 1;
  const added = useGrowing(Math.ceil(path.value.length / CHUNK));
  useSought(added === Infinity, () => (isAtEnd.value = false));
  const rows = path.value.map((message, i): MessageRow => ({
    message,
    live: running?.lives.get(message.id),
    isLast: i === last,
    isDrawn: i > last - FIRST_DRAWN,
    branches: counts.value.get(branchKey(message)) ?? 1,
    editing: editing?.id === message.id ? editing : undefined,
  }));
  return (
    <div class="log-frame">
      <div
        class="log"
        ref={root}
        onScroll={onScroll}
        role="log"
        aria-live="off"
        aria-label={words.messages}
        tabIndex={0}
      >
        <div ref={content}>
          <WatchContext.Provider value={watch}>
            {chunksOf(rows).map((chunk, i, all) =>
              i < all.length - added ? null : <Chunk key={i} rows={chunk} onEdit={onEdit} />,
            )}
            {columns.value.length > 0 && (
              <Columns messages={columns.value} running={running} editing={editing} onEdit={onEdit} />
            )}
          </WatchContext.Provider>
        </div>
      </div>
      {!isAtEnd.value && <ToEnd onClick={toEnd} />}
      <Spoken open={open} />
    </div>
  );
}

/** The path of a chat, without the simultaneous answers at its end, and these answers. */
function useShownPath({ chat, messages }: OpenChat) {
  const whole = useComputed(() => pathTo(messages.value, chat.value.leaf));
  const columns = useComputed(() => {
    const last = whole.value.at(-1);
    return last ? columnsOf(messages.value, last) : [];
  });
  const path = useComputed(() => (columns.value.length > 0 ? whole.value.slice(0, -1) : whole.value));
  return { whole, columns, path };
}

const ToEnd = ({ onClick }: { onClick: () => void }) => (
  <button type="button" class="to-end" onClick={onClick}>
    <Icon name="down" size={16} />
    {useWords().chat.toEnd}
  </button>
);

/** Watches elements that come near the visible part of a list. */
function useWatch(root: { readonly current: HTMLElement | null }): Watch | undefined {
  const [watch, setWatch] = useState<Watch | undefined>(undefined);
  useEffect(() => {
    const made = makeWatch(root.current!);
    setWatch(() => made.watch);
    return made.end;
  }, []);
  return watch;
}

/** Delays of repeated scrolling: rendering the messages around the target moves it. */
const AGAIN_MS = [0, 80, 300] as const;
const MARKED_MS = 2500;

/**
 * Scrolls to the message found by a search, and marks it for a moment.
 * @param isWhole true once every message is rendered
 */
function useSought(isWhole: boolean, onFound: () => void): void {
  const { chats } = useApp();
  const sought = chats.sought.value;
  useEffect(() => {
    const element = sought !== undefined && isWhole ? document.getElementById(elementId(sought)) : null;
    if (!element) return undefined;
    onFound();
    const timers = AGAIN_MS.map((ms) => setTimeout(() => element.scrollIntoView({ block: "center" }), ms));
    element.animate([{ background: "var(--accent-soft)" }, { background: "transparent" }], MARKED_MS);
    const end = setTimeout(() => (chats.sought.value = undefined), MARKED_MS);
    return () => [...timers, end].forEach(clearTimeout);
  }, [sought, isWhole]);
}

/** A count that grows to `all` over some frames, and is infinite from there on. */
function useGrowing(all: number): number {
  const [count, setCount] = useState(CHUNKS_A_FRAME);
  useEffect(() => {
    if (count < Infinity) nextFrame(() => setCount(count < all ? count + CHUNKS_A_FRAME : Infinity));
  }, [count]);
  return count;
}

interface ChunkProps {
  readonly rows: readonly MessageRow[];
  readonly onEdit: OnEdit;
}

/** Some messages, rendered again only if one of them changed: most of a long chat never does. */
class Chunk extends Component<ChunkProps> {
  override shouldComponentUpdate({ rows }: ChunkProps): boolean {
    const mine = this.props.rows;
    return rows.length !== mine.length || rows.some((row, i) => !isSame(row, mine[i]!));
  }

  override render() {
    const { rows, onEdit } = this.props;
    return rows.map((row) => <MessageItem key={row.message.id} {...row} onEdit={onEdit} />);
  }
}

const isSame = (a: MessageRow, b: MessageRow): boolean =>
  a.message === b.message &&
  a.live === b.live &&
  a.isLast === b.isLast &&
  a.isDrawn === b.isDrawn &&
  a.branches === b.branches &&
  a.editing === b.editing;

const chunksOf = (rows: readonly MessageRow[]): (readonly MessageRow[])[] =>
  Array.from({ length: Math.ceil(rows.length / CHUNK) }, (_, i) => rows.slice(i * CHUNK, (i + 1) * CHUNK));

/** Announces an answer to screen readers once it is complete, not piece by piece. */
function Spoken({ open }: { open: OpenChat }) {
  const { chats } = useApp();
  const { chat: words } = useWords();
  const { id, leaf } = open.chat.value;
  const wasRunning = useRef(false);
  const said = useSignal("");
  const isRunning = chats.running.value.has(id);
  useEffect(() => {
    if (wasRunning.current && !isRunning) {
      const last = leaf === null ? undefined : open.messages.peek().get(leaf);
      said.value = last?.role === "assistant" ? `${last.error ?? ""} ${last.content}`.slice(0, 4000) : "";
    } else if (isRunning) said.value = words.answering;
    wasRunning.current = isRunning;
  }, [isRunning]);
  return (
    <div class="off-screen" role="status" aria-live="polite">
      {said.value}
    </div>
  );
}
