/** `GET /` and `GET /api/version`: clients probe them to detect the server and its version. Browsers get the page. */
import { Elysia } from "elysia";
import { API_VERSION } from "../../base/index.ts";
import type { RouteDeps } from "./deps.ts";
import { describe } from "../schema/describe.ts";
import { pageReply, wantsPage } from "./ui.ts";

/** The text that existing clients look for. */
const PROBE_TEXT = "Ollama is running";

export const rootRoutes = ({ answer, version, findAsset }: RouteDeps) =>
  new Elysia()
    .get(
      "/",
      ({ request }) =>
        answer(request, () =>
          wantsPage(request) ? pageReply(findAsset, request) : { kind: "text", body: PROBE_TEXT },
        ),
      {
        detail: describe({
          api: "native",
          summary: "That this server runs; to browsers the page",
          reply: ["text", "html"],
        }),
      },
    )
    .get(
      "/api/version",
      ({ request }) => answer(request, () => ({ kind: "json", body: { version: API_VERSION, hearth: version } })),
      {
        detail: describe({ api: "native", summary: "The version of the API, and that of this server", reply: "json" }),
      },
    );
