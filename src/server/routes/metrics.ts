/** `GET /metrics`: what a monitoring system reads. */
import { Elysia } from "elysia";
import type { RouteDeps } from "../deps.ts";
import { describe } from "../schema/describe.ts";

export const metricsRoutes = ({ answer, metrics }: RouteDeps) =>
  new Elysia().get(
    "/metrics",
    ({ request }) =>
      answer(request, async () => ({ kind: "text", body: await metrics.text(), contentType: metrics.contentType })),
    { detail: describe({ api: "server", summary: "Counts and times in the Prometheus text format", reply: "text" }) },
  );
