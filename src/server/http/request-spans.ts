/** Requests as spans of the traces that they belong to. */
import { formatTraceparent, parseTraceparent, type Span, type Tracer } from "../../base/tracing.ts";

/** Paths that supervisors and monitors poll. */
const UNTRACED = new Set(["/livez", "/readyz", "/startupz", "/health", "/metrics", "/metrics/vllm"]);
const FAILED = 500;

export interface RequestSpans {
  /** The headers of a request, with its span as the parent. */
  headersOf(request: Request): Headers;
  ended(request: Request, end: RequestEnd): void;
}

export interface RequestEnd {
  readonly route: string;
  readonly status: number;
  /** Absent: it was refused before it began. */
  readonly ms?: number | undefined;
  /** Fields of the log line. */
  readonly notes: Readonly<Record<string, unknown>>;
}

export function makeRequestSpans(tracer: Tracer, now: () => number): RequestSpans {
  const spans = new WeakMap<Request, Span>();
  const spanOf = (request: Request, startMs?: number): Span => {
    const span = spans.get(request) ?? tracer.begin(parseTraceparent(request.headers.get("traceparent")), startMs);
    spans.set(request, span);
    return span;
  };
  return {
    headersOf(request) {
      const headers = new Headers(request.headers);
      headers.set("traceparent", formatTraceparent(spanOf(request).trace));
      return headers;
    },
    ended(request, { route, status, ms = 0, notes }) {
      if (UNTRACED.has(route)) return;
      const text = (name: string): string | undefined => (typeof notes[name] === "string" ? notes[name] : undefined);
      const number = (name: string): number | undefined => (typeof notes[name] === "number" ? notes[name] : undefined);
      const reason = text("done_reason");
      tracer.end(spanOf(request, now() - ms), {
        name: `${request.method} ${route}`,
        kind: "server",
        attributes: {
          "http.request.method": request.method,
          "http.route": route,
          "http.response.status_code": status,
          "hearth.request.id": text("request_id"),
          "hearth.delivery.id": text("delivery"),
          "gen_ai.request.model": text("model"),
          "gen_ai.usage.input_tokens": number("prompt_eval_count"),
          "gen_ai.usage.output_tokens": number("eval_count"),
          "gen_ai.response.finish_reasons": reason === undefined ? undefined : [reason],
        },
        error: status >= FAILED ? (text("error") ?? `status ${status}`) : undefined,
      });
    },
  };
}
