/** `GET /metrics`: metrics for a monitoring system; `/metrics/vllm`: metrics for routers, with vLLM's names. */
import { Elysia } from "elysia";
import type { RouteDeps } from "./deps.ts";
import type { Reply } from "../http/exchange.ts";
import { describe } from "../schema/describe.ts";

export const metricsRoutes = ({ answer, metrics }: RouteDeps) => {
  const text = (body: string): Reply => ({ kind: "text", body, contentType: metrics.contentType });
  return new Elysia()
    .get("/metrics", ({ request }) => answer(request, async () => text(await metrics.text())), {
      detail: describe({ api: "server", summary: "Counts and times in the Prometheus text format", reply: "text" }),
    })
    .get("/metrics/vllm", ({ request }) => answer(request, async () => text(await metrics.routerText())), {
      detail: describe({ api: "server", summary: "What routers read of each model, by vLLM's names", reply: "text" }),
    });
};
