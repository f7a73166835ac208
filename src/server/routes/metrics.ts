/** `GET /metrics`: metrics for a monitoring system; `/metrics/vllm`: metrics for routers, with vLLM's names. */
import type { RouteDeps } from "./deps.ts";
import type { Reply } from "../http/exchange.ts";
import { get } from "./route.ts";

export const metricsRoutes = [
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

const textReply = ({ contentType }: RouteDeps["metrics"], body: string): Reply => ({ kind: "text", body, contentType });
