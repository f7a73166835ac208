/** `POST /api/show`: all details of one model. */
import { t } from "elysia";
import { AppError, formatTime } from "../../base/index.ts";
import { parseOptions } from "../../engine/index.ts";
import { displayName, type ModelEntry, parseReference } from "../../library/portable.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { EffectiveTemplate } from "../models/effective-template.ts";
import type { Exchange } from "../http/exchange.ts";
import { requireModel } from "../models/find-model.ts";
import { modelDetails } from "../models/inspect.ts";
import { checkPresent, encodeJson } from "../http/json-pieces.ts";
import { ARRAY_ITEMS_MAX, modelInfo, tensorList } from "../ollama/model-info.ts";
import { modelfileText, parameterLines } from "../ollama/model-text.ts";
import { post, type Route } from "./route.ts";

export const ShowBody = t.Object(
  {
    model: t.Optional(t.String()),
    /** The former name of `model`. */
    name: t.Optional(t.String()),
    system: t.Optional(t.String()),
    verbose: t.Optional(t.Boolean()),
    options: t.Optional(t.Record(t.String(), t.Unknown())),
  },
  { title: "ShowRequest" },
);
export type ShowBody = typeof ShowBody.static;

/** Time limit of the question to another machine, for a client that only asks whether a model exists. */
const SOURCE_MS_MAX = 3000;

export function showRoutes(): Route[] {
  const inTurn = makeTurns();
  return [
    post(
      "/api/show",
      async (deps, exchange) => {
        const body = await readRequest(exchange.request, ShowBody);
        const run = (): Promise<Blob> => show(deps, exchange, body);
        return { kind: "json", body: await (body.verbose ? inTurn(run) : run()) };
      },
      { api: "native", summary: "What is known of a model", body: ShowBody },
    ),
  ];
}

/** Runs one at a time: showing Gemma 4's vocabulary costs 160 MB, and many at once would exhaust the memory. */
function makeTurns(): <T>(run: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (run) => {
    const result = last.then(run);
    last = result.catch(() => {}).then(() => {}); // forgets the result
    return result;
  };
}

/** The reply as JSON text. */
async function show(deps: RouteDeps, { request, signal, note }: Exchange, body: ShowBody): Promise<Blob> {
  checkPresent(signal);
  const name = requireModel(body.model || body.name);
  note({ model: name });
  const stored = await deps.store.find(name);
  if (!stored) throw await notFound(deps, { name, signal });
  const entry = withOverrides(await deps.store.load(stored.displayName), body);
  const facts = await deps.inspect(stored);
  const { template, model_info: info, ...rest } = await fileFields(entry, body.verbose ?? false);
  const reply = {
    ...(entry.licenses.length > 0 ? { license: entry.licenses.join("\n") } : {}),
    modelfile: modelfileText(entry, template.native ? undefined : template.text),
    parameters: parameterLines({ ...facts?.parameters, ...entry.parameters }),
    template: template.text,
    ...(template.problem === undefined ? {} : { template_error: template.problem }),
    ...(entry.system ? { system: entry.system } : {}),
    details: modelDetails(stored, facts),
    ...(stored.config.requires ? { requires: stored.config.requires } : {}),
    ...(entry.messages.length > 0 ? { messages: entry.messages } : {}),
    model_info: isCopilot(request) ? { ...info, "general.basename": name } : info,
    ...rest,
    capabilities: facts?.capabilities ?? [],
    modified_at: formatTime(stored.modifiedAt.getTime()),
  };
  return encodeJson(reply, signal);
}

/**
 * The error of a missing model, with its location elsewhere if that is known quickly, because showing it would require
 * a pull.
 */
async function notFound(
  { store }: RouteDeps,
  { name, signal }: { name: string; signal: AbortSignal },
): Promise<AppError> {
  const reference = parseReference(name);
  const text = `model '${displayName(reference)}' not found`;
  const soon = AbortSignal.any([signal, AbortSignal.timeout(SOURCE_MS_MAX)]);
  const isOffered = await store.isOffered?.(reference, soon).catch((error: unknown) => {
    // a source that fails to answer does not change that the model is missing here
    if (error instanceof AppError) return false;
    throw error;
  });
  const hint = ": the source of models has it; a pull or its first use installs it";
  return new AppError("not_found", isOffered ? `${text} here${hint}` : text);
}

/** True for a client that uses the base name as the name of the model. */
const isCopilot = ({ headers }: Request): boolean =>
  headers.get("user-agent")?.startsWith("GitHubCopilotChat/") ?? false;

/** Applies the request's system message and options to the shown model. */
function withOverrides(entry: ModelEntry, { system, options }: ShowBody): ModelEntry {
  const parameters = { ...entry.parameters, ...parseOptions(options).options };
  return { ...entry, parameters, ...(system ? { system } : {}) };
}

interface FileFields {
  readonly template: EffectiveTemplate;
  readonly model_info: object;
  readonly projector_info?: object;
  readonly tensors: readonly object[];
}

/** Fields from the GGUF files; loads their readers on first use. */
async function fileFields(entry: ModelEntry, verbose: boolean): Promise<FileFields> {
  const { readHeader } = await import("../../engine/formats/index.ts");
  const { effectiveTemplate } = await import("../models/effective-template.ts");
  const options = verbose ? {} : { arrayItemsMax: ARRAY_ITEMS_MAX };
  const header = await readHeader(entry.paths.model, options);
  const [projector] = entry.paths.projectors;
  return {
    template: effectiveTemplate(entry, header.metadata),
    model_info: modelInfo(header, verbose),
    ...(projector ? { projector_info: modelInfo(await readHeader(projector, options), verbose) } : {}),
    tensors: tensorList(header),
  };
}
