/** `POST /api/show`: everything that is known of one model. */
import { Elysia } from "elysia";
import { formatTime } from "../../base/duration.ts";
import { AppError } from "../../base/errors.ts";
import type { Gguf } from "../../gguf/gguf.ts";
import { openGguf } from "../../gguf/read.ts";
import { parseOptions } from "../../sampling/options.ts";
import { displayName, parseReference } from "../../store/name.ts";
import type { ModelEntry } from "../../store/store.ts";
import { readRequest } from "../body.ts";
import type { RouteDeps } from "../deps.ts";
import { effectiveTemplate, type EffectiveTemplate } from "../effective-template.ts";
import type { Exchange } from "../exchange.ts";
import { requireModel } from "../inference.ts";
import { modelDetails } from "../inspect.ts";
import { modelInfo, tensorList } from "../model-info.ts";
import { modelfileText, parameterLines } from "../model-text.ts";
import { ShowBody } from "../schema/show.ts";

export const showRoutes = (deps: RouteDeps) =>
  new Elysia().post(
    "/api/show",
    ({ request }) => deps.answer(request, async (exchange) => ({ kind: "json", body: await show(deps, exchange) })),
    { parse: "none" },
  );

async function show(deps: RouteDeps, { request, note }: Exchange): Promise<object> {
  const body = await readRequest(request, ShowBody);
  const name = requireModel(body.model || body.name);
  note({ model: name });
  const stored = await deps.store.find(name);
  if (!stored) throw new AppError("not_found", `model '${displayName(parseReference(name))}' not found`);
  const entry = withOverrides(await deps.store.load(stored.displayName), body);
  const facts = await deps.inspect(stored);
  const { template, ...rest } = fileFields(entry, body.verbose ?? false);
  const printed = template.native ? entry.template : template.text;
  const system = entry.system ? { system: entry.system } : {};
  return {
    ...(entry.licenses.length > 0 ? { license: entry.licenses.join("\n") } : {}),
    modelfile: modelfileText(entry, printed),
    parameters: parameterLines(entry.parameters),
    template: template.text,
    ...system,
    details: modelDetails(stored, facts),
    ...(entry.messages.length > 0 ? { messages: entry.messages } : {}),
    ...rest,
    capabilities: facts?.capabilities ?? [],
    modified_at: formatTime(stored.modifiedAt.getTime()),
  };
}

/** A request may ask what the model would look like with another system message or other options. */
function withOverrides(entry: ModelEntry, { system, options }: ShowBody): ModelEntry {
  const parameters = { ...entry.parameters, ...parseOptions(options).options };
  return { ...entry, parameters, ...(system ? { system } : {}) };
}

/** What stands in the GGUF files. */
function fileFields(entry: ModelEntry, verbose: boolean): { template: EffectiveTemplate } & Record<string, unknown> {
  return withGguf(entry.paths.model, (gguf) => ({
    template: effectiveTemplate(entry, gguf.metadata),
    model_info: modelInfo(gguf, verbose),
    ...projectorFields(entry, verbose),
    tensors: tensorList(gguf),
  }));
}

function projectorFields({ paths }: ModelEntry, verbose: boolean): object {
  const [projector] = paths.projectors;
  return projector ? { projector_info: withGguf(projector, (gguf) => modelInfo(gguf, verbose)) } : {};
}

function withGguf<T>(path: string, use: (gguf: Gguf) => T): T {
  const gguf = openGguf(path);
  try {
    return use(gguf);
  } finally {
    gguf.close();
  }
}
