/**
 * Progress of pull, push and create: a bar for every digest at a terminal, and one line for each new status elsewhere.
 * "success" is the last line.
 */
import { MultiBar, type SingleBar } from "cli-progress";
import type { Json } from "../client/client.ts";
import { plainLine } from "./drawing.ts";
import { formatBytes, formatTimeLeft } from "./format.ts";
import type { Terminal } from "./terminal.ts";

export interface Progress {
  show(event: Json): void;
  /** Ends drawing; the drawn bars remain. */
  end(): void;
}

export function makeProgress(terminal: Terminal): Progress {
  return terminal.showsProgress ? makeBars(terminal) : makeLines(terminal);
}

function makeLines(terminal: Terminal): Progress {
  let last = "";
  return {
    show({ status }) {
      if (typeof status !== "string" || status === last) return;
      last = status;
      terminal.note(status);
    },
    end: () => {},
  };
}

interface Bar {
  readonly bar: SingleBar;
  readonly startedMs: number;
  /** Bytes that were present at the start. */
  readonly first: number;
}

function makeBars(terminal: Terminal): Progress {
  const bars = new MultiBar(
    {
      stream: terminal.errors,
      format: "{status}  {percentage}% {bar} {done}/{size}  {speed}  {left}",
      barCompleteChar: "█",
      barIncompleteChar: " ",
      barsize: Math.min(20, Math.max(1, (terminal.errors.columns || 80) - BESIDE_BAR)),
      hideCursor: true,
      clearOnComplete: false,
      emptyOnZero: true,
      autopadding: true,
      forceRedraw: true,
      gracefulExit: false, // the command handles signals
    },
    undefined,
  );
  const byDigest = new Map<string, Bar>();
  let last = "";
  return {
    show({ status, digest, total, completed = 0 }) {
      const text = plainLine(String(status));
      if (typeof digest !== "string" || typeof total !== "number") {
        if (text !== last && text !== SUCCESS) bars.log(`${text}\n`);
        last = text;
        bars.update();
        return;
      }
      const known = byDigest.get(digest) ?? { bar: bars.create(total, 0), startedMs: Date.now(), first: completed };
      byDigest.set(digest, known);
      known.bar.setTotal(total);
      known.bar.update(completed, {
        status: shortStatus(text),
        done: formatBytes(completed),
        size: formatBytes(total),
        ...rateOf(known, { completed, total }),
      });
    },
    end() {
      bars.update();
      bars.stop();
      if (last === SUCCESS) terminal.note(SUCCESS); // below the bars
    },
  };
}

const SUCCESS = "success";
/** Columns of everything beside a bar: a narrower bar keeps the time left on the line. */
const BESIDE_BAR = 69;

/** Speed and remaining time of a bar, once they are known. */
function rateOf(
  { startedMs, first }: Bar,
  { completed, total }: { completed: number; total: number },
): { speed: string; left: string } {
  const seconds = (Date.now() - startedMs) / 1000;
  const rate = seconds > 0.5 ? (completed - first) / seconds : 0;
  if (rate <= 0 || completed >= total) return { speed: "", left: "" };
  return { speed: `${formatBytes(rate)}/s`, left: formatTimeLeft((total - completed) / rate) };
}

/** Shortens digests to twelve digits. */
function shortStatus(status: string): string {
  return status.replace(/sha256[:-]([0-9a-f]{12})[0-9a-f]{52}/, "$1");
}
