/** `DELETE /api/delete`: a model, and the blobs that only it has. A runner that has it loaded goes on. */
import { Elysia } from "elysia";
import { AppError } from "../../base/errors.ts";
import { quoteGo } from "../../base/quote.ts";
import { parseReference, type ModelName } from "../../store/name.ts";
import { readRequest } from "../body.ts";
import type { RouteDeps } from "../deps.ts";
import type { Exchange } from "../exchange.ts";
import { requireModel } from "../find-model.ts";
import { DeleteBody } from "../schema/delete.ts";
import { describe } from "../schema/describe.ts";

export const deleteRoutes = (deps: RouteDeps) =>
  new Elysia().delete("/api/delete", ({ request }) => deps.answer(request, (exchange) => remove(deps, exchange)), {
    parse: "none",
    detail: describe({ api: "native", summary: "Delete a model", body: DeleteBody, reply: "empty" }),
  });

async function remove({ library }: RouteDeps, { request, note }: Exchange): Promise<{ kind: "text"; body: string }> {
  const body = await readRequest(request, DeleteBody);
  const model = requireModel(body.model || body.name);
  note({ model });
  if (!(await library.remove(checkedName(model)))) throw new AppError("not_found", `model '${model}' not found`);
  return { kind: "text", body: "" };
}

function checkedName(text: string): ModelName {
  try {
    return parseReference(text);
  } catch (error) {
    throw new AppError("bad_request", `name ${quoteGo(text)} is invalid`, { cause: error });
  }
}
