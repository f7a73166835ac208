/**
 * `GET /api/system` and `GET /api/requests`: the server's hardware and settings, and its recent requests.
 * `GET /metrics`: metrics for a monitoring system; `/metrics/vllm`: metrics for routers, with vLLM's names.
 */
import type { Reply } from "../http/exchange.ts";
import type { RouteDeps } from "./deps.ts";
import { get } from "./route.ts";

export const systemRoutes = [
  get("/api/system", system, { api: "server", summary: "The server's hardware and settings" }),
  get("/api/requests", ({ recent }) => ({ kind: "json", body: { requests: recent.list() } }), {
    api: "server",
    summary: "The last requests, newest first",
  }),
  get("/metrics", async ({ metrics }) => textReply(metrics, await metrics.text()), {
    api: "server",
    summary: "Counts and times in the Prometheus text format",
    reply: "text",
  }),
  get("/metrics/vllm", async ({ metrics }) => textReply(metrics, await metrics.routerText()), {
    api: "server",
    summary: "What routers read of each model, by vLLM's names",
    reply: "text",
  }),
];

async function system({ version, runtime, machine }: RouteDeps): Promise<Reply> {
  const { running, waiting, events } = runtime.activity();
  const placed = runtime.loaded().flatMap(({ name, placement }) => (placement ? [{ name, placement }] : []));
  const activity = { running, waiting, ...events };
  const divided = placed.length > 0 && { divided_models: placed };
  return { kind: "json", body: { version, ...(await machine?.()), activity, ...divided } };
}

const textReply = ({ contentType }: RouteDeps["metrics"], body: string): Reply => ({ kind: "text", body, contentType });
