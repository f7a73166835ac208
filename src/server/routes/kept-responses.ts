/** Kept responses by their ids: reading, deleting, the items of their input, cancelling. */
import type { AppError } from "../../base/index.ts";
import { InvalidRequest } from "../http/errors.ts";
import { pageOf } from "../responses/input-items.ts";
import type { KeptResponse, KeptResponses } from "../responses/kept.ts";
import { del, get, post, type Route } from "./route.ts";

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

export function keptResponsesRoutes(open: OpenKept): Route[] {
  const by =
    (handle: (found: Found) => object): Route["handler"] =>
    async ({ ownerOf }, { request }, { params: { id = "" } }) => {
      const kept = await open();
      const asked = { owner: ownerOf(request), id };
      const found = kept?.find(asked);
      if (!kept || !found) throw new InvalidRequest("not_found", `Response with id '${shown(id)}' not found.`);
      return { kind: "json", body: handle({ kept, found, asked, query: new URL(request.url).searchParams }) };
    };
  return [
    get(PATH, by(retrieve), { api: "OpenAI", summary: "A kept response" }),
    del(PATH, by(remove), { api: "OpenAI", summary: "Deletes a kept response" }),
    get(`${PATH}/input_items`, by(listItems), {
      api: "OpenAI",
      summary: "The input of a kept response, with what it continues",
    }),
    post(`${PATH}/cancel`, by(cancel), { api: "OpenAI", summary: "Cancels a response in the background" }),
  ];
}

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
