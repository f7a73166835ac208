/** A running answer: shown once per frame, and saved once per second. */
import { signal, type ReadonlySignal } from "@preact/signals";
import type { AnswerEvent } from "./answers.ts";
import type { AnswerStats, Message, ToolCall } from "./tree.ts";

export interface LiveAnswer {
  readonly content: string;
  readonly thinking: string;
  readonly calls: readonly ToolCall[];
  /** The reason for waiting. */
  readonly wait?: { readonly text: string; readonly fraction?: number };
  /** Pieces since the first, about one per token, and the time that they took. */
  readonly pieces: number;
  readonly ms: number;
}

export interface Live {
  readonly shown: ReadonlySignal<LiveAnswer>;
  take(event: AnswerEvent): void;
  /** Progress while waiting; ignored once there is text. */
  wait(event: AnswerEvent): void;
  /** The message so far. */
  message(): Message;
  readonly stats: AnswerStats | undefined;
  readonly reason: string | undefined;
}

/** @param onFrame calls back before the next frame, or soon if there are no frames */
export function makeLive(start: Message, onFrame: (show: () => void) => void): Live {
  let { content } = start;
  let thinking = start.thinking ?? "";
  let calls: readonly ToolCall[] = [];
  let wait: LiveAnswer["wait"];
  let [pieces, firstMs, lastMs] = [0, 0, 0];
  let stats: AnswerStats | undefined;
  let reason: string | undefined;
  let isDue = false;
  const now = (): LiveAnswer => ({ content, thinking, calls, pieces, ms: lastMs - firstMs, ...(wait ? { wait } : {}) });
  const shown = signal<LiveAnswer>(now());

  const touch = (): void => {
    if (isDue) return;
    isDue = true;
    onFrame(() => {
      isDue = false;
      shown.value = now();
    });
  };

  const live: Live = {
    shown,
    wait: (event) => {
      if (firstMs === 0) live.take(event);
    },
    take(event) {
      if (event.kind === "wait") {
        wait = { text: event.text, ...(event.fraction === undefined ? {} : { fraction: event.fraction }) };
        return touch();
      }
      if (event.kind === "done") {
        stats = event.stats;
        reason = event.reason;
        return;
      }
      wait = undefined;
      lastMs = performance.now();
      if (firstMs === 0) firstMs = lastMs;
      else pieces++;
      if (event.kind === "text") content += event.text;
      else if (event.kind === "thinking") thinking += event.text;
      else calls = [...calls, event.call];
      touch();
    },
    message: () => ({
      ...start,
      content,
      ...(thinking === "" ? {} : { thinking }),
      ...(calls.length > 0 ? { calls } : {}),
    }),
    get stats() {
      return stats;
    },
    get reason() {
      return reason;
    },
  };
  return live;
}

/** Calls back at the next frame; a hidden page has no frames, so it uses a timer. */
export function nextFrame(show: () => void): void {
  if (document.visibilityState === "visible") requestAnimationFrame(show);
  else setTimeout(show, 500);
}
