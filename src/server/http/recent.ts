/** The last requests, with the same fields as the log: counts and names, never text. */

const KEPT_MAX = 200;
/** Requests that pages and monitors repeat are omitted if they succeeded. */
const ASKED_OFTEN = /^\/(ui(\/|$)|hooks-admin\/|api\/(ps|tags|version|system|requests)$|health$|metrics$|$)/;

export interface RecentRequest {
  /** Epoch milliseconds of its end. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly ms?: number;
  /** The name of its key. */
  readonly key?: string;
  readonly model?: string;
  readonly requestId?: string;
  readonly promptTokens?: number;
  readonly tokens?: number;
}

export interface RecentRequests {
  add(request: RecentRequest): void;
  /** Newest first. */
  list(): readonly RecentRequest[];
}

export function makeRecentRequests(): RecentRequests {
  const kept: RecentRequest[] = [];
  return {
    add(request) {
      if (request.status < 400 && request.method === "GET" && ASKED_OFTEN.test(request.path)) return;
      kept.push(request);
      if (kept.length > KEPT_MAX) kept.shift();
    },
    list: () => kept.toReversed(),
  };
}

/** Maximum number of characters of paths and names, which a client chooses. */
const CHARS_MAX = 200;

/** The fields of a log line that are kept. */
export function recentOf(
  about: Pick<RecentRequest, "at" | "method" | "path" | "status"> & {
    readonly ms?: number | undefined;
    key?: string | undefined;
  },
  notes: Readonly<Record<string, unknown>> = {},
): RecentRequest {
  const { ms, key, path, ...rest } = about;
  const { model, request_id: requestId, prompt_eval_count: promptTokens, eval_count: tokens } = notes;
  return {
    ...rest,
    path: path.slice(0, CHARS_MAX),
    ...(ms === undefined ? {} : { ms }),
    ...(key === undefined ? {} : { key }),
    ...(typeof model === "string" ? { model: model.slice(0, CHARS_MAX) } : {}),
    ...(typeof requestId === "string" ? { requestId } : {}),
    ...(typeof promptTokens === "number" ? { promptTokens } : {}),
    ...(typeof tokens === "number" ? { tokens } : {}),
  };
}
