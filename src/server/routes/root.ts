/** `GET /` and `GET /api/version`: clients probe them to detect the server and its version. Browsers get the page. */
import { API_VERSION } from "../../base/index.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import type { RouteDeps } from "./deps.ts";
import { get } from "./route.ts";
import { pageReply, wantsPage } from "./ui.ts";

/** The text that existing clients look for. */
const PROBE_TEXT = "Ollama is running";

export const rootRoutes = [
  get("/", root, { api: "native", summary: "That this server runs; to browsers the page", reply: ["text", "html"] }),
  get("/api/version", ({ version }) => ({ kind: "json", body: { version: API_VERSION, hearth: version } }), {
    api: "native",
    summary: "The version of the API, and that of this server",
  }),
];

async function root({ findAsset }: RouteDeps, { request }: Exchange): Promise<Reply> {
  return wantsPage(request) ? pageReply(findAsset, request) : { kind: "text", body: PROBE_TEXT };
}
