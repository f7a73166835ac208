/** Kept responses by their ids: reading, deleting, the items of their input, cancelling. */
import { Elysia } from "elysia";
import type { AppError } from "../../base/index.ts";
import { InvalidRequest } from "../http/errors.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { pageOf } from "../responses/input-items.ts";
import type { KeptResponse, KeptResponses } from "../responses/kept.ts";
import { describe, type RouteNote } from "../schema/describe.ts";
import type { RouteDeps } from "./deps.ts";

const PATH = "/v1/responses/:id";

/** Opens the kept responses at the first use; undefined if none are kept here. */
export type OpenKept = () => Promise<KeptResponses | undefined>;

/** The input of a handler. */
interface Found {
  readonly kept: KeptResponses;
  readonly found: KeptResponse;
  readonly asked: { readonly owner: string; readonly id: string };
  readonly query: URLSearchParams;
}

export function keptResponsesRoutes(deps: RouteDeps, open: OpenKept) {
  const by = (handle: (found: Found) => object) => {
    const reply = async ({ request }: Exchange, id: string): Promise<Reply> => {
      const kept = await open();
      const asked = { owner: deps.ownerOf(request), id };
      const found = kept?.find(asked);
      if (!kept || !found) throw new InvalidRequest("not_found", `Response with id '${shown(id)}' not found.`);
      return { kind: "json", body: handle({ kept, found, asked, query: new URL(request.url).searchParams }) };
    };
    return ({ request, params }: { request: Request; params: { id: string } }) =>
      deps.answer(request, (exchange) => reply(exchange, params.id));
  };
  return new Elysia()
    .get(PATH, by(retrieve), noted("A kept response"))
    .delete(PATH, by(remove), noted("Deletes a kept response"))
    .get(`${PATH}/input_items`, by(listItems), noted("The input of a kept response, with what it continues"))
    .post(`${PATH}/cancel`, by(cancel), { parse: "none", ...noted("Cancels a response in the background") });
}

const noted = (summary: string, more: Partial<RouteNote> = {}) => ({
  detail: describe({ api: "OpenAI", summary, reply: "json", ...more }),
});

const SHOWN = 80;
const shown = (id: string): string => id.slice(0, SHOWN);

/** The error for a `previous_response_id` that is not kept. */
export const noPrevious = (id: string): AppError =>
  new InvalidRequest("bad_request", `Previous response with id '${shown(id)}' not found.`, {
    param: "previous_response_id",
    word: "previous_response_not_found",
  });

function retrieve({ found, query }: Found): object {
  if (query.get("stream") === "true") {
    throw new InvalidRequest("bad_request", "stream: expected false: only responses in the background can be resumed", {
      param: "stream",
    });
  }
  return found.response;
}

function remove({ kept, asked }: Found): object {
  kept.remove(asked);
  return { id: asked.id, object: "response", deleted: true };
}

function listItems({ kept, found, asked, query }: Found): object {
  const before = found.previous === undefined ? [] : kept.conversation({ ...asked, id: found.previous }).items;
  return pageOf([...before, ...found.input], query);
}

function cancel(): never {
  throw new InvalidRequest("bad_request", "Cannot cancel a synchronous response.");
}
