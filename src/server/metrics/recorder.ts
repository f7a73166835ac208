/** What is kept of every request: one line in the log, and its place in the metrics. */
import type { Logger } from "../../base/log.ts";
import type { Metrics } from "./metrics.ts";
import { recentOf, type RecentRequests } from "./recent.ts";
import { matches } from "../http/paths.ts";

interface RequestEnd {
  readonly status: number;
  readonly ms?: number;
  /** What the metrics count it as; the pattern that the path fits where absent. */
  readonly route?: string;
  /** Counts and names for the log; never text. */
  readonly notes?: Readonly<Record<string, unknown>>;
}

export type Recorder = (request: Request, end: RequestEnd) => void;

interface RecorderParts {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly recent: RecentRequests;
  readonly now: () => Date;
  /** Patterns of all routes; asked for once, when the first request ends. */
  readonly routes: () => readonly { readonly path: string }[];
  /** The name of the key that a request came with. */
  readonly keyName: (request: Request) => string | undefined;
}

export function makeRecorder({ log, metrics, recent, now, routes, keyName }: RecorderParts): Recorder {
  let patterns: readonly string[] | undefined;
  return (request, { status, ms, notes, route: named }) => {
    const path = new URL(request.url).pathname;
    const key = keyName(request);
    log.info("request", {
      method: request.method,
      path,
      status,
      ...(ms === undefined ? {} : { ms }),
      ...(key === undefined ? {} : { key }),
      ...notes,
    });
    recent.add(recentOf({ at: now().getTime(), method: request.method, path, status, ms, key }, notes));
    patterns ??= [...new Set(routes().map((route) => route.path))];
    const route = named ?? patterns.find((pattern) => matches(pattern, path)) ?? "other";
    metrics.request({ method: request.method, route, status, ...(ms === undefined ? {} : { seconds: ms / 1000 }) });
  };
}
