/** `POST /api/copy`: another name for a model; the blobs are shared. */
import { AppError } from "../../base/index.ts";
import { type ModelName, parseReference } from "../../library/portable.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange } from "../http/exchange.ts";
import { CopyBody } from "../schema/copy.ts";
import { post } from "./route.ts";

export const copyRoutes = [
  post("/api/copy", copy, { api: "native", summary: "Copy a model", body: CopyBody, reply: "empty" }),
];

async function copy({ library }: RouteDeps, { request, note }: Exchange): Promise<{ kind: "text"; body: string }> {
  const { source = "", destination = "" } = await readRequest(request, CopyBody);
  note({ model: source, destination });
  const from = checkedName(source, "source");
  const to = checkedName(destination, "destination");
  if (!(await library.copy({ from, to }))) throw new AppError("not_found", `model ${JSON.stringify(source)} not found`);
  return { kind: "text", body: "" };
}

function checkedName(text: string, what: "source" | "destination"): ModelName {
  try {
    return parseReference(text);
  } catch (error) {
    throw new AppError("bad_request", `${what} ${JSON.stringify(text)} is invalid`, { cause: error });
  }
}
