/**
 * Progress of pull, push and create: a bar for every digest where a person watches, and one line for each new status
 * elsewhere.
 */
import { MultiBar, type SingleBar } from "cli-progress";
import type { Json } from "./client.ts";
import { formatBytes } from "./format.ts";
import type { Terminal } from "./terminal.ts";

export interface Progress {
  show(event: Json): void;
  /** Leaves what was drawn as it stands. */
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

function makeBars(terminal: Terminal): Progress {
  const bars = new MultiBar(
    {
      stream: terminal.errors,
      format: "{status}  {percentage}% {bar} {done}/{size}  {speed}",
      barCompleteChar: "█",
      barIncompleteChar: " ",
      barsize: 20,
      hideCursor: true,
      clearOnComplete: false,
      emptyOnZero: true,
      autopadding: true,
      forceRedraw: true,
      gracefulExit: false, // signals are the command's
    },
    undefined,
  );
  const byDigest = new Map<string, { bar: SingleBar; startedMs: number; first: number }>();
  let last = "";
  return {
    show({ status, digest, total, completed = 0 }) {
      if (typeof digest !== "string" || typeof total !== "number") {
        if (typeof status === "string" && status !== last) bars.log(`${status}\n`);
        last = String(status);
        bars.update();
        return;
      }
      const known = byDigest.get(digest) ?? { bar: bars.create(total, 0), startedMs: Date.now(), first: completed };
      byDigest.set(digest, known);
      const seconds = (Date.now() - known.startedMs) / 1000;
      const rate = seconds > 0.5 ? `${formatBytes((completed - known.first) / seconds)}/s` : "";
      known.bar.setTotal(total);
      known.bar.update(completed, {
        status: shortStatus(String(status)),
        done: formatBytes(completed),
        size: formatBytes(total),
        speed: completed < total ? rate : "",
      });
    },
    end() {
      bars.update();
      bars.stop();
    },
  };
}

/** Digests by their first twelve digits. */
function shortStatus(status: string): string {
  return status.replace(/sha256[:-]([0-9a-f]{12})[0-9a-f]{52}/, "$1");
}
