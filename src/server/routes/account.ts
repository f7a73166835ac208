/**
 * Requests about accounts and a cloud, which this server does not have: answers that clients understand, without
 * contacting any other server.
 */
import { Type } from "@sinclair/typebox";
import { AppError } from "../../base/index.ts";
import { readRequest } from "../http/body.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { del, get, post } from "./route.ts";

const SIGN_OUT = { api: "native", summary: "Sign out: no effect, Hearth has no accounts" } as const;
const NO_CLOUD = { cloud: { disabled: true, source: "env" } };

const notSignedIn = (): Reply => {
  throw new AppError("unauthorized", "you are not currently signed in: this server has no accounts");
};

/** A request for a cloud: read, then refused. */
const noCloud =
  (what: string) =>
  async (_: unknown, { request }: Exchange): Promise<Reply> => {
    await readRequest(request, Type.Object({}));
    throw new AppError("forbidden", `ollama cloud is disabled: ${what} is unavailable`);
  };

export const accountRoutes = [
  get("/api/status", () => ({ kind: "json", body: NO_CLOUD }), {
    api: "native",
    summary: "Whether models run elsewhere: they do not",
  }),
  post("/api/me", notSignedIn, { api: "native", summary: "The signed-in user: Hearth has no accounts" }),
  post("/api/signout", notSignedIn, SIGN_OUT),
  del("/api/user/keys/:key", notSignedIn, SIGN_OUT),
  get("/api/experimental/model-recommendations", () => ({ kind: "json", body: { recommendations: [] } }), {
    api: "native",
    summary: "Recommended models: none",
  }),
  post("/api/experimental/web_search", noCloud("web search"), { api: "native", summary: "Search the web: refused" }),
  post("/api/experimental/web_fetch", noCloud("web fetch"), { api: "native", summary: "Read a page: refused" }),
];
