/**
 * The adapters of a new model: converts safetensors, and checks every adapter against its model before anything is
 * created.
 */
import { AppError } from "../../base/index.ts";
import type { AdapterBase } from "../convert/adapter.ts";
import type { ModelFolder } from "../convert/folder.ts";
import {
  getNumber,
  getString,
  joinTensors,
  type ModelHeader,
  readAdapter,
  readPart,
} from "../../engine/formats/index.ts";
import type { Claims } from "../store/claims.ts";
import { convertFolder } from "./convert-folder.ts";
import type { CreateParts, CreateRequest, Progress } from "./creation.ts";
import type { Weights } from "./quantize-weights.ts";
import { inspectSource, labelled, type InspectedSource, type Source } from "./sources.ts";

interface Laid {
  readonly request: CreateRequest;
  readonly model: Weights;
  /** May include adapters that were sent as files of the model. */
  readonly inspected: readonly InspectedSource[];
  readonly claims: Claims;
}

/**
 * The request's own adapter, inspected. Throws `bad_request` if it is not an adapter, is damaged or does not fit the
 * model, and `unsupported` for kinds of adapters that we cannot apply.
 */
export async function* inspectAdapters(
  parts: CreateParts,
  { request, model, inspected, claims }: Laid,
): AsyncGenerator<Progress, InspectedSource[], void> {
  const base = await readBaseHeader(model);
  const adapters = inspected.filter(({ kind }) => kind === "adapter");
  const own: InspectedSource[] = [];
  if (request.adapter) {
    const source = yield* adapterSource(parts, { adapter: request.adapter, request, base, claims });
    own.push(await inspectSource(source));
  }
  for (const adapter of [...adapters, ...own]) await checkFits(adapter, base);
  if (adapters.length > 1) throw new AppError("bad_request", "only one adapter is currently supported");
  return own;
}

type Header = Pick<ModelHeader, "path" | "metadata" | "tensors">;

interface Own extends Pick<Laid, "request" | "claims"> {
  readonly adapter: Source | ModelFolder;
  readonly base: Header;
}

async function* adapterSource(
  { root, inTurn, signal }: CreateParts,
  { adapter, request, base, claims }: Own,
): AsyncGenerator<Progress, Source, void> {
  if (request.shape === "modelfile") yield { status: "creating adapter layer" };
  if (!("files" in adapter)) {
    if (request.shape === "fields") yield { status: "parsing GGUF" };
    return adapter;
  }
  return yield* convertFolder(root, { folder: adapter, base: adapterBase(base), claims, inTurn, signal });
}

/** The combined headers of all parts of a model. */
async function readBaseHeader({ label, paths }: Weights): Promise<Header> {
  const headers = await Promise.all(
    paths.map(async (path, shard) => (await readPart(path, { shard, arrayItemsMax: 0 })).header),
  );
  return { path: label, metadata: headers[0]!.metadata, tensors: joinTensors(paths, headers) }; // at least one part
}

function adapterBase({ metadata }: Header): AdapterBase {
  const arch = getString(metadata, "general.architecture");
  const nHeads = getNumber(metadata, `${arch}.attention.head_count`);
  return {
    arch,
    nLayers: getNumber(metadata, `${arch}.block_count`),
    nHeads,
    nKvHeads: getNumber(metadata, `${arch}.attention.head_count_kv`, nHeads),
  };
}

async function checkFits({ label, path, part }: InspectedSource, base: Header): Promise<void> {
  if (part) throw new AppError("bad_request", `${label}: expected an adapter in one file, got a part of one`);
  try {
    const { header } = await readPart(path, { shard: 0, arrayItemsMax: 0 });
    readAdapter({ ...header, path }, base);
  } catch (error) {
    throw labelled(error, { path, label });
  }
}
