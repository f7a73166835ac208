/**
 * Requests about accounts and a cloud, which this server does not have: answers that clients understand, without
 * contacting any other server.
 */
import { Elysia, t } from "elysia";
import { AppError } from "../../base/index.ts";
import type { RouteDeps } from "./deps.ts";
import { readRequest } from "../http/body.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { describe } from "../schema/describe.ts";

const NO_CLOUD = { cloud: { disabled: true, source: "env" } };

const notSignedIn = (): Reply => {
  throw new AppError("unauthorized", "you are not currently signed in: this server has no accounts");
};

/** A request for a cloud: read, then refused. */
const noCloud =
  (what: string) =>
  async ({ request }: Exchange): Promise<Reply> => {
    await readRequest(request, t.Object({}));
    throw new AppError("forbidden", `ollama cloud is disabled: ${what} is unavailable`);
  };

export const accountRoutes = ({ answer }: RouteDeps) =>
  new Elysia()
    .get("/api/status", ({ request }) => answer(request, () => ({ kind: "json", body: NO_CLOUD })), {
      detail: describe({ api: "native", summary: "Whether models run elsewhere: they do not", reply: "json" }),
    })
    .post("/api/me", ({ request }) => answer(request, notSignedIn), {
      parse: "none",
      detail: describe({ api: "native", summary: "The signed-in user: Hearth has no accounts", reply: "json" }),
    })
    .post("/api/signout", ({ request }) => answer(request, notSignedIn), {
      parse: "none",
      detail: describe({ api: "native", summary: "Sign out: no effect, Hearth has no accounts", reply: "json" }),
    })
    .delete("/api/user/keys/:key", ({ request }) => answer(request, notSignedIn), {
      parse: "none",
      detail: describe({ api: "native", summary: "Sign out: no effect, Hearth has no accounts", reply: "json" }),
    })
    .get(
      "/api/experimental/model-recommendations",
      ({ request }) => answer(request, () => ({ kind: "json", body: { recommendations: [] } })),
      { detail: describe({ api: "native", summary: "Recommended models: none", reply: "json" }) },
    )
    .post("/api/experimental/web_search", ({ request }) => answer(request, noCloud("web search")), {
      parse: "none",
      detail: describe({ api: "native", summary: "Search the web: refused", reply: "json" }),
    })
    .post("/api/experimental/web_fetch", ({ request }) => answer(request, noCloud("web fetch")), {
      parse: "none",
      detail: describe({ api: "native", summary: "Read a page: refused", reply: "json" }),
    });
