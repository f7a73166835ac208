/** `GET /api/system` and `GET /api/requests`: the server's hardware and settings, and its recent requests. */
import type { Reply } from "../http/exchange.ts";
import type { RouteDeps } from "./deps.ts";
import { get } from "./route.ts";

export const systemRoutes = [
  get("/api/system", system, { api: "server", summary: "The server's hardware and settings" }),
  get("/api/requests", ({ recent }) => ({ kind: "json", body: { requests: recent.list() } }), {
    api: "server",
    summary: "The last requests, newest first",
  }),
];

async function system({ version, runtime, machine }: RouteDeps): Promise<Reply> {
  const { running, waiting, events } = runtime.activity();
  const placed = runtime.loaded().flatMap(({ name, places }) => (places ? [{ name, placement: places }] : []));
  const activity = { running, waiting, ...events };
  const divided = placed.length > 0 && { divided_models: placed };
  return { kind: "json", body: { version, ...(await machine?.()), activity, ...divided } };
}
