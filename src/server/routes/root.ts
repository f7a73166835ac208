/** `GET /` and `GET /api/version`: what clients probe to find out that, and what, this is. */
import { Elysia } from "elysia";
import type { RouteDeps } from "../deps.ts";

/** The text that existing clients look for. */
const PROBE_TEXT = "Ollama is running";

export const rootRoutes = ({ answer, version }: RouteDeps) =>
  new Elysia()
    .get("/", ({ request }) => answer(request, () => ({ kind: "text", body: PROBE_TEXT })))
    .get("/api/version", ({ request }) => answer(request, () => ({ kind: "json", body: { version } })));
