/** Records every request: one line in the log, and its place in the metrics. */
import type { Logger } from "../../base/index.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { recentOf, type RecentRequests } from "./recent.ts";
import type { RequestSpans } from "./request-spans.ts";
import { matches } from "./paths.ts";

interface RequestEnd {
  readonly status: number;
  readonly ms?: number;
  /** The label in the metrics; default: the pattern that matches the path. */
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
  /** Undefined: tracing is off. */
  readonly spans: RequestSpans | undefined;
  /** Patterns of all routes; read when the first request ends. */
  readonly routes: () => readonly { readonly path: string }[];
  /** Names of the requests' keys. */
  readonly keyNames: Pick<WeakMap<Request, string>, "get">;
}

export function makeRecorder({ log, metrics, recent, now, routes, spans, keyNames }: RecorderParts): Recorder {
  let patterns: readonly string[] | undefined;
  return (request, { status, ms, notes, route: named }) => {
    const path = new URL(request.url).pathname;
    const key = keyNames.get(request);
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
    spans?.ended(request, { route, status, ms, notes: notes ?? {} });
    metrics.request({ method: request.method, route, status, ...(ms === undefined ? {} : { seconds: ms / 1000 }) });
  };
}
