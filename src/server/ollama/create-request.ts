/**
 * Converts the body of a create request, in either shape, to a request to the store. All errors that need no model are
 * raised here, before the answer begins.
 */
import { AppError, unexpected } from "../../base/index.ts";
import {
  blobSource,
  isModelFile,
  kindOfFiles,
  parseFileType,
  readModelfileAt,
  requestOfModelfile,
  type Source,
} from "../../library/making.ts";
import { type ConfigExtras, type CreateRequest, type Library, parseDigest } from "../../library/index.ts";
import { checkRequires, type ModelName, parseReference, type StoredMessage } from "../../library/portable.ts";
import type { CreateBody } from "../schema/create.ts";

/** Fields of the current shape; a Modelfile has commands for them. */
const FIELDS = [
  "from",
  "files",
  "adapters",
  "draft",
  "draft_files",
  "template",
  "license",
  "system",
  "parameters",
  "messages",
  "renderer",
  "parser",
  "requires",
  "info",
] as const satisfies readonly (keyof CreateBody)[];

type Place = Pick<Library, "root" | "importDirs">;

/**
 * Throws `bad_request`, `forbidden` for paths that may not be read, and `unsupported` for models on other servers and
 * for messages with images or tool calls.
 */
export async function createRequest(body: CreateBody, library: Place): Promise<CreateRequest> {
  const { draft_quantize: type } = body;
  const request = await describedBy(body, library);
  if (!type) return request;
  if (request.draft === undefined) throw new AppError("bad_request", "--draft-quantize requires a DRAFT model");
  return { ...request, draftQuantize: parseFileType(type) };
}

async function describedBy(body: CreateBody, library: Place): Promise<CreateRequest> {
  const sources = fileSources(body, { field: "files", root: library.root });
  const adapters = fileSources(body, { field: "adapters", root: library.root });
  checkSupported(body);
  const drafts = fileSources(body, { field: "draft_files", root: library.root });
  const name = parseReference(body.model || body.name || "");
  const type = body.quantize || body.quantization;
  const quantize = type ? { quantize: parseFileType(type) } : {};
  if (!body.modelfile && !body.path)
    return { ...requestOfFields(body, { name, sources, adapters, drafts }), ...quantize };
  const extra = FIELDS.find((field) => isGiven(body[field]));
  if (extra)
    throw new AppError("bad_request", `'${extra}' cannot be combined with '${body.modelfile ? "modelfile" : "path"}'`);
  const place = { root: library.root, importDirs: library.importDirs };
  if (body.modelfile) return { ...(await requestOfModelfile(body.modelfile, { ...place, name })), ...quantize };
  const { text, folder } = await readModelfileAt(body.path ?? "", place);
  return { ...(await requestOfModelfile(text, { ...place, name, folder })), ...quantize };
}

function isGiven(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return value !== undefined && value !== "";
}

function checkSupported(body: CreateBody): void {
  if (isGiven(body.draft_files) && body.remote_host) {
    throw new AppError("bad_request", "DRAFT cannot be used with remote models");
  }
  const refuse = (field: keyof CreateBody, what: string): void => {
    if (isGiven(body[field])) throw new AppError("unsupported", `'${field}': ${what} not supported yet`);
  };
  refuse("remote_host", "models on other servers are");
}

/** With weights of another format than GGUF, these and the files beside them become one model. */
function splitSources(sources: readonly Source[], label: string): Pick<CreateRequest, "sources" | "folder"> {
  if (!kindOfFiles(sources.map((source) => source.label))) return { sources };
  const parts = sources.filter((source) => isModelFile(source.label));
  const folder = { label, files: new Map(parts.map((part) => [part.label, part.path])) };
  return { sources: sources.filter((source) => !parts.includes(source)), folder };
}

/** A GGUF, or a folder of safetensors. */
function adapterOf(given: readonly Source[], label: string): Pick<CreateRequest, "adapter"> {
  const { sources, folder } = splitSources(given, label);
  const [adapter, ...more] = [...(folder ? [folder] : []), ...sources];
  if (more.length > 0) throw new AppError("bad_request", "only one adapter is currently supported");
  return adapter ? { adapter } : {};
}

interface FieldParts {
  readonly name: ModelName;
  readonly sources: readonly Source[];
  readonly adapters: readonly Source[];
  readonly drafts: readonly Source[];
}

/** The uploaded draft, or the name of a model. */
function draftOf({ draft }: CreateBody, given: readonly Source[]): Pick<CreateRequest, "draft"> {
  const [own, ...more] = [...given, ...(draft ? [draft] : [])];
  if (more.length > 0) throw new AppError("bad_request", "only one draft model is currently supported");
  return own === undefined ? {} : { draft: own };
}

function requestOfFields(body: CreateBody, parts: FieldParts): CreateRequest {
  const { from, files, template, system } = body;
  if (!from && files && parts.sources.length === 0) throw new AppError("bad_request", "no files provided to convert");
  if (from) parseReference(from);
  const { capabilities = [], ...info } = parseInfo(body.info);
  if (body.requires) checkRequires(body.requires);
  const texts = { renderer: body.renderer, parser: body.parser, requires: body.requires };
  const extras = Object.entries(texts).flatMap(([key, value]) => (value ? [[key, value] as const] : []));
  return {
    shape: "fields",
    name: parts.name,
    ...splitSources(parts.sources, parts.name.model),
    ...adapterOf(parts.adapters, parts.name.model),
    ...draftOf(body, parts.drafts),
    ...(from ? { base: from } : {}),
    ...(template ? { template } : {}),
    ...(system ? { system } : {}),
    licenses: parseLicenses(body.license),
    parameters: withoutNulls(body.parameters ?? {}),
    messages: (body.messages ?? []).map(storedMessage),
    extras: { ...Object.fromEntries(extras), ...info },
    capabilities,
  };
}

/** Keys are paths on the client's machine: they are never used, but paths that leave their folder are refused. */
function fileSources(
  body: CreateBody,
  { field, root }: { field: "files" | "adapters" | "draft_files"; root: string },
): Source[] {
  return Object.entries(body[field] ?? {}).map(([path, digest]) => {
    if (typeof digest !== "string") throw unexpected(field, "a digest for each file", digest);
    const segments = path.split(/[\\/]/);
    const isLocal = segments.every((part) => !["", ".", ".."].includes(part)) && !/^[A-Za-z]:|\0/.test(path);
    if (!isLocal) throw new AppError("bad_request", "file path must be relative");
    return blobSource(root, { label: path, digest: parseDigest(digest) });
  });
}

function withoutNulls(parameters: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== null));
}

/** One text or several. */
function parseLicenses(value: unknown): string[] {
  if (value === undefined || value === "") return [];
  if (typeof value === "string") return [value];
  if (Array.isArray(value) && value.every((item) => typeof item === "string"))
    return value.filter((item) => item !== "");
  throw new AppError("bad_request", "license must be a string or an array of strings");
}

function storedMessage({
  role = "",
  content = "",
  images,
  tool_calls: calls,
}: NonNullable<CreateBody["messages"]>[number]): StoredMessage {
  if (images?.length || calls?.length) {
    throw new AppError("unsupported", "messages: images and tool calls of stored messages are not supported yet");
  }
  if (!/^\w+$/.test(role)) {
    const got = JSON.stringify(role.slice(0, 40));
    throw new AppError("bad_request", `messages: expected a role such as "system", "user" or "assistant", got ${got}`);
  }
  return { role: role.toLowerCase(), content };
}

/** Names in `info`, with the type of each and the field of the configuration that it sets. */
const INFO = {
  model_family: { kind: "string", sets: "model_family" },
  base_name: { kind: "string", sets: "base_name" },
  quantization_level: { kind: "string", sets: "file_type" },
  parameter_size: { kind: "string", sets: "model_type" },
  context_length: { kind: "number", sets: "context_length" },
  embedding_length: { kind: "number", sets: "embedding_length" },
} as const;

/** Fields of `info` without an effect: unknown ones, and fields for models on other servers. */
export function idleInfo(info: CreateBody["info"]): string[] {
  const used = new Set(["model_family", "quantization_level", "parameter_size", "capabilities"]);
  return Object.entries(info ?? {}).flatMap(([key, value]) => (value === null || used.has(key) ? [] : [key]));
}

function parseInfo(info: CreateBody["info"]): ConfigExtras & { capabilities?: readonly string[] } {
  const extras: Record<string, string | number | readonly string[]> = {};
  for (const [key, { kind, sets }] of Object.entries(INFO)) {
    const value = info?.[key];
    if (value === undefined || value === null) continue;
    if (typeof value !== kind) throw new AppError("bad_request", `info field "${key}" must be a ${kind}`);
    if (typeof value === "number" && !(Number.isSafeInteger(value) && value >= 0)) {
      throw new AppError("bad_request", `info field "${key}" must be a non-negative integer`);
    }
    if (value !== "") extras[sets] = value as string | number; // its type was checked
  }
  const capabilities = info?.["capabilities"];
  if (capabilities === undefined || capabilities === null) return extras;
  if (!Array.isArray(capabilities) || !capabilities.every((item) => typeof item === "string")) {
    throw new AppError("bad_request", `info field "capabilities" must be an array of strings`);
  }
  return { ...extras, capabilities };
}
