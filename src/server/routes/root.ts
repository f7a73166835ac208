/** `GET /` and `GET /api/version`: what clients probe to find out that, and what, this is. */
import { Elysia } from "elysia";
import { API_VERSION } from "../../version.ts";
import type { RouteDeps } from "../deps.ts";
import { describe } from "../schema/describe.ts";

/** The text that existing clients look for. */
const PROBE_TEXT = "Ollama is running";

export const rootRoutes = ({ answer, version }: RouteDeps) =>
  new Elysia()
    .get("/", ({ request }) => answer(request, () => ({ kind: "text", body: PROBE_TEXT })), {
      detail: describe({ api: "native", summary: "That this server runs", reply: "text" }),
    })
    .get(
      "/api/version",
      ({ request }) => answer(request, () => ({ kind: "json", body: { version: API_VERSION, hearth: version } })),
      {
        detail: describe({ api: "native", summary: "The version of the API, and that of this server", reply: "json" }),
      },
    );
