/** `GET /api/system` and `GET /api/requests`: the server's hardware and settings, and its recent requests. */
import { Elysia } from "elysia";
import type { RouteDeps } from "./deps.ts";
import { describe } from "../schema/describe.ts";

export const systemRoutes = ({ answer, version, runtime, machine, recent }: RouteDeps) =>
  new Elysia()
    .get(
      "/api/system",
      ({ request }) =>
        answer(request, async () => {
          const { running, waiting, events } = runtime.activity();
          return { kind: "json", body: { version, ...(await machine?.()), activity: { running, waiting, ...events } } };
        }),
      { detail: describe({ api: "server", summary: "The server's hardware and settings", reply: "json" }) },
    )
    .get(
      "/api/requests",
      ({ request }) => answer(request, () => ({ kind: "json", body: { requests: recent.list() } })),
      {
        detail: describe({ api: "server", summary: "The last requests, newest first", reply: "json" }),
      },
    );
