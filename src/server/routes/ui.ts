/**
 * `GET /ui`: the page, and `GET /ui/:file`, its files. It loads nothing from other servers, runs only its own scripts,
 * and is isolated, so that WebAssembly may use threads. `GET /` and `GET /api/version`: clients probe them to detect
 * the server and its version; browsers get the page.
 */
import { AppError, API_VERSION } from "../../base/index.ts";
import { type FindAsset, FIRST_STYLE, type ServedAsset } from "../../page/assets.ts";
import type { Reply, Exchange } from "../http/exchange.ts";
import { get } from "./route.ts";
import type { RouteDeps } from "./deps.ts";

/** The page may run its own scripts, talk to this server, and show pictures that it was given. */
const policy = (): string[] => [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'", // the kernels and grammars of a model in the page
  "worker-src 'self'",
  "connect-src 'self'",
  `style-src 'self' 'sha256-${sha256(FIRST_STYLE)}'`,
  "img-src 'self' data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

const sha256 = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("base64");

/** No text of the page becomes markup or a script's address. Workers, which have no document, start threads. */
const TRUSTED_TYPES = ["require-trusted-types-for 'script'", "trusted-types hearth"];

const HEADERS = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "permissions-policy": "camera=(), microphone=(), geolocation=()",
};

export const uiRoutes = [
  get("/", root, { api: "native", summary: "That this server runs; to browsers the page", reply: ["text", "html"] }),
  get("/api/version", ({ version }) => ({ kind: "json", body: { version: API_VERSION, hearth: version } }), {
    api: "native",
    summary: "The version of the API, and that of this server",
  }),
  get("/ui", ({ findAsset }, { request }) => pageReply(findAsset, request), {
    api: "server",
    summary: "The page: chats, models, the gateway",
    reply: "html",
  }),
  get("/ui/:file", async ({ findAsset }, { request }, { params: { file = "" } }) => {
    const asset = file === "" ? undefined : await findAsset(file);
    if (!asset) throw new AppError("not_found", "no such file");
    return replyOf(asset, request);
  }),
];

/** True if a browser asks for a document. */
const wantsPage = (request: Request): boolean =>
  (request.headers.get("accept") ?? "").split(",").some((type) => type.trim().split(";")[0] === "text/html");

async function pageReply(findAsset: FindAsset, request: Request): Promise<Reply> {
  const page = await findAsset("");
  if (!page) throw new AppError("not_found", "no such file");
  return replyOf(page, request);
}

function replyOf(asset: ServedAsset, request: Request): Reply {
  const { contentType, etag, isImmutable } = asset;
  const headers = new Headers({
    ...HEADERS,
    "content-security-policy": [...policy(), ...(contentType.startsWith("text/html") ? TRUSTED_TYPES : [])].join("; "),
    etag,
    "content-type": contentType,
    "cache-control": isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
    vary: "accept, accept-encoding",
  });
  if (request.headers.get("if-none-match")?.includes(etag)) return { kind: "file", status: 304, headers };
  const isPacked = /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
  if (isPacked) headers.set("content-encoding", "gzip");
  return { kind: "file", status: 200, headers, body: new Blob([isPacked ? asset.gzipped() : asset.text]) };
}

/** The text that existing clients look for. */
const PROBE_TEXT = "Ollama is running";

async function root({ findAsset }: RouteDeps, { request }: Exchange): Promise<Reply> {
  return wantsPage(request) ? pageReply(findAsset, request) : { kind: "text", body: PROBE_TEXT };
}
