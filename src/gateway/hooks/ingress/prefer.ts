/** `Prefer: wait=N` (RFC 7240): the answer is the run's outcome if it comes in time, else 202. */
import { AppError } from "../../../base/index.ts";
import type { RunStatus } from "../queue/deliveries/run-status.ts";
import { isFinal } from "../queue/deliveries/state.ts";
import type { Runs } from "./ports.ts";
import type { Waits } from "./waits.ts";

/** Longer than proxies keep a silent connection. */
const WAIT_SECONDS_MAX = 300;

/** Whole seconds; undefined if a request does not want to wait. */
export function preferredWait(headers: Headers): number | undefined {
  const asked = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(headers.get("prefer") ?? "")?.[1];
  const seconds = Math.min(Number(asked ?? 0), WAIT_SECONDS_MAX);
  return seconds > 0 ? seconds : undefined;
}

/**
 * The outcomes of all runs; undefined if one takes too long, waiting is no longer allowed, or the database fails: the
 * runs stay accepted.
 */
export async function outcomes(
  { runs, waits }: { readonly runs: Runs; readonly waits: Waits },
  runIds: readonly string[],
  { gone, seconds }: { gone: AbortSignal; seconds: number },
): Promise<readonly RunStatus[] | undefined> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), seconds * 1000);
  const abort = (): void => late.abort();
  gone.addEventListener("abort", abort, { once: true });
  if (gone.aborted) abort(); // the client left while its request was stored
  const wait = waits.begin(late.signal);
  try {
    if (!wait) return undefined;
    const ended = await Promise.all(runIds.map((id) => endOf(runs, id, wait.signal)));
    const all = ended.filter((status) => status !== undefined);
    return all.length === runIds.length ? all : undefined;
  } catch (error) {
    if (error instanceof AppError && error.code === "storage") return undefined;
    throw error;
  } finally {
    abort(); // stops the others if one failed
    wait?.end();
    clearTimeout(timer);
    gone.removeEventListener("abort", abort);
  }
}

async function endOf(runs: Runs, id: string, signal: AbortSignal): Promise<RunStatus | undefined> {
  for await (const news of runs.watch(id, signal)) {
    if (news.kind === "status" && isFinal(news.status.state)) return news.status;
  }
  return undefined;
}
