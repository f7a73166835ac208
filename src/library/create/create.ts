/**
 * Creates a model: from another model, from GGUF files, or both, with its own texts and parameters. Blobs come first,
 * the manifest last and atomically: if it stops at any point, the models of the store are unchanged.
 */
import { AppError, assert, checkNotCancelled, messageOf } from "../../base/index.ts";
import type { ModelFolder } from "../convert/folder.ts";
import { namesFor, parseOptions, PARSERS, RENDERERS } from "../../engine/index.ts";
import { type ChatFormat, choosePrompt } from "../../engine/text/index.ts";
import { blobPath, findBlob, touchBlob, writeBlob } from "../store/blobs.ts";
import { makeClaims, type Claims } from "../store/claims.ts";
import { convertFolder } from "./convert-folder.ts";
import { readBase, type Base } from "./create-base.ts";
import { inspectAdapters } from "./create-adapter.ts";
import { inspectDraft, quantizeDraft } from "./create-draft.ts";
import type { CreateParts, CreateRequest, Progress } from "./creation.ts";
import { describeBlob } from "../store/describe-blob.ts";
import type { GgufDetails } from "../store/details.ts";
import { digestOf } from "../store/digest.ts";
import { imageConfig, type ConfigExtras } from "../store/image.ts";
import { CONFIG_TYPE, layersOf, mediaType, type Layer, type LayerKind } from "../store/manifest.ts";
import { digestsOf } from "../store/references.ts";
import { readArchitecture, unsupportedText } from "./architecture.ts";
import { layerOfFile, type StoredFile } from "../store/model-files.ts";
import { checkWeights, quantizeWeights, type Weights } from "./quantize-weights.ts";
import {
  inspectSource,
  sortParts,
  storeSources,
  takeWhisper,
  type InspectedSource,
  type Source,
  type StoredSource,
} from "./sources.ts";

/** The progress messages of each request shape; those for quantizing are the same in both. */
const WORDS = {
  modelfile: { existing: "using already created layer", fresh: "writing layer" },
  fields: { existing: "using existing layer", fresh: "creating new layer" },
  quantized: { existing: "using existing layer", fresh: "creating new layer" },
} as const;

/** Configuration fields that a model inherits from its base. */
const INHERITED = ["renderer", "parser", "requires", "hearth_template"] as const;

/** A layer, with its bytes until they are a blob. */
interface PendingLayer extends Layer {
  readonly bytes?: Uint8Array;
  /** A file that became a blob for this request. */
  readonly isNew?: boolean;
}

/**
 * Throws before the first value if the request itself is invalid: `bad_request`, or `not_found` without its base. Later
 * throws `bad_request` and `unsupported` for its files, and `storage` if the disk is full.
 */
export async function* createModel(parts: CreateParts, request: CreateRequest): AsyncGenerator<Progress, void, void> {
  checkTexts(request);
  const claims = makeClaims(parts);
  try {
    const base = request.base === undefined ? undefined : await readBase(parts, request.base, claims);
    if (!base && !request.folder && request.sources.length === 0) {
      throw new AppError("bad_request", "neither 'from' or 'files' was specified");
    }
    yield* makeModel(parts, { base, request, claims });
  } finally {
    await claims.end();
  }
}

async function* makeModel(
  parts: CreateParts,
  { base, request: asked, claims }: { base: Base | undefined; request: CreateRequest; claims: Claims },
): AsyncGenerator<Progress, void, void> {
  const { root, inTurn, signal } = parts;
  const { sources, folder } = await takeWhisper(asked);
  let request = asked;
  if (request.shape === "modelfile" && !request.quantize) yield { status: "reading model metadata" };
  const inspected: InspectedSource[] = [];
  const files: StoredFile[] = [];
  for (const source of sources) {
    if (request.shape === "fields") yield { status: "parsing GGUF" };
    inspected.push(await inspectSource(source));
  }
  yield* warnOfTemplates(request, inspected);
  checkOneModel(base, inspected, folder);
  await checkRuns(parts, base, inspected);
  if (folder) {
    const source = yield* convertFolder(root, { folder, claims, inTurn, signal });
    files.push(...source.files);
    request = { ...asked, parameters: { ...source.parameters, ...asked.parameters } };
    inspected.push(await inspectSource(source));
  }
  if (request.adapter || inspected.some(({ kind }) => kind === "adapter")) {
    const model = await findWeights(root, { base, inspected });
    inspected.push(...(yield* inspectAdapters(parts, { request, model, inspected, claims })));
  }
  if (request.draft) {
    const model = await findWeights(root, { base, inspected });
    const draft = await inspectDraft(parts, { draft: request.draft, model, claims });
    inspected.push(yield* quantizeDraft(parts, { draft, type: request.draftQuantize, claims }));
  }
  yield* storeModel(parts, { base, inspected, files, request, claims });
}

/** A model with an invalid template is created nevertheless: it can complete texts. */
function* warnOfTemplates(
  { template, extras }: CreateRequest,
  inspected: readonly InspectedSource[],
): Generator<Progress, void, void> {
  if (template || extras["renderer"]) return;
  for (const { label, templateError } of inspected) {
    if (templateError === undefined) continue;
    yield { status: `warning: ${label}: ${templateError}: chats will fail unless the model gets a TEMPLATE` };
  }
}

interface Inspected {
  readonly base: Base | undefined;
  readonly inspected: InspectedSource[];
  readonly request: CreateRequest;
  readonly claims: Claims;
}

interface WithFiles extends Inspected {
  /** The model's files, if its GGUF only describes it. */
  readonly files: readonly StoredFile[];
}

async function* storeModel(
  parts: CreateParts,
  { base, inspected, files, request: asked, claims }: WithFiles,
): AsyncGenerator<Progress, void, void> {
  const { root } = parts;
  const request = base ? asked : withNames(asked, inspected);
  const shape = request.quantize ? "quantized" : request.shape;
  const weights = yield* storeWeights(parts, { base, inspected, request, claims });
  if (shape === "modelfile") yield { status: "creating system layer" }; // always, in the order that clients expect
  const format = detectFormat(request, { base, inspected });
  const described = files.map((file): PendingLayer => ({ ...layerOfFile(file), isNew: file.isNew }));
  const layers = [
    ...pendingLayers({ ...weights, request: format ? withStop(request, format) : request }),
    ...described,
  ];
  const config = await pendingConfig({ root, ...weights, layers, request });
  for (const layer of shape === "modelfile" ? [...layers, config] : layers) {
    const isParams = isKind(layer, "params");
    if (format && isParams && shape !== "modelfile") yield { status: `using autodetected template ${format.name}` };
    const isNew = await putLayer(root, layer);
    if (isNew) claims.add(layer.digest, true);
    yield { status: `${isNew ? WORDS[shape].fresh : WORDS[shape].existing} ${layer.digest}` };
  }
  yield { status: "writing manifest" };
  checkNotCancelled(parts.signal);
  const contents = [...layers, config].flatMap(({ bytes }) => bytes ?? []);
  const manifest = { config: layerOf(config), layers: layers.map(layerOf) };
  claims.narrow(digestsOf(manifest));
  await parts.publish(request.name, { manifest, contents });
  yield { status: "success" };
}

/** The chat format of a file, if neither the request nor the base has stop strings. */
function detectFormat(
  { template, parameters }: CreateRequest,
  { base, inspected }: { base: Base | undefined; inspected: readonly InspectedSource[] },
): ChatFormat | undefined {
  if (template || parameters["stop"] !== undefined || base?.parameters["stop"] !== undefined) return undefined;
  return inspected.find(({ kind, format }) => kind === "model" && format)?.format;
}

/** Adds the names that an architecture needs, for a file without a template for which the request has none. */
function withNames(request: CreateRequest, inspected: readonly InspectedSource[]): CreateRequest {
  const { template, extras } = request;
  const model = inspected.find(({ kind }) => kind === "model");
  if (!model || model.hasTemplate || template || extras["renderer"] || extras["parser"]) return request;
  return { ...request, extras: { ...namesFor(model.details.family), ...extras } };
}

const withStop = (request: CreateRequest, { stop }: ChatFormat): CreateRequest => ({
  ...request,
  parameters: { stop, ...request.parameters },
});

function checkName(what: string, name: ConfigExtras[string] | undefined, known: readonly string[]): void {
  if (name === undefined || known.includes(String(name))) return;
  throw new AppError("bad_request", `unknown ${what} ${JSON.stringify(name)}; known: ${known.join(", ")}`);
}

function checkTexts({ template, parameters, extras }: CreateRequest): void {
  checkName("renderer", extras["renderer"], RENDERERS);
  checkName("parser", extras["parser"], PARSERS);
  try {
    if (template) choosePrompt({ go: template });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError("bad_request", `template error: ${error.message}`, { cause: error });
  }
  try {
    parseOptions(parameters);
  } catch (error) {
    throw new AppError("bad_request", messageOf(error), { cause: error }); // here the request is at fault
  }
}

/** Throws `unsupported` if the weights cannot run here: because of their architecture, or of a file's features. */
async function checkRuns(
  { root, runs, checkModel }: CreateParts,
  base: Base | undefined,
  files: readonly InspectedSource[],
): Promise<void> {
  if (!runs) return;
  const [layer] = layersOf(base?.layers ?? [], "model");
  const models: Pick<Source, "label" | "path">[] = files.filter(({ kind, part }) => kind === "model" && !part?.index);
  if (base && layer) models.push({ label: base.name, path: blobPath(root, layer.digest) });
  for (const { label, path } of models) {
    const architecture = await readArchitecture(path);
    if (!(await runs(architecture))) throw new AppError("unsupported", unsupportedText(label, architecture));
  }
  for (const file of files.filter(({ kind, part }) => kind === "model" && !part)) await checkModel?.(file);
}

/** Throws `bad_request` unless base, files and folder together have exactly one model; a split one counts once. */
function checkOneModel(base: Base | undefined, files: readonly InspectedSource[], folder?: ModelFolder): void {
  const labels = files.filter(({ kind, part }) => kind === "model" && !part?.index).map(({ label }) => label);
  if (base && layersOf(base.layers, "model").length > 0) labels.unshift(base.name);
  if (folder) labels.push(folder.label);
  if (labels.length === 1) return;
  const found = labels.length === 0 ? "none" : labels.map((label) => `'${label}'`).join(" and ");
  throw new AppError("bad_request", `expected one GGUF model to build upon, got ${found}`);
}

interface StoredWeights {
  readonly base: Base | undefined;
  readonly files: readonly StoredSource[];
}

/** The files as blobs, quantized if requested. Quantized weights of the base count as files then. */
async function* storeWeights(
  { root, inTurn, signal }: CreateParts,
  { base, inspected, request, claims }: Inspected,
): AsyncGenerator<Progress, StoredWeights, void> {
  const type = request.quantize;
  const weights = type && (await findWeights(root, { base, inspected }));
  if (weights) await checkWeights(weights);
  if (!weights || weights.fileType === type) return { base, files: await storeSources(root, inspected, claims) };
  const quantized = yield* quantizeWeights(root, { weights, type, claims, inTurn, signal });
  if (request.shape === "fields") yield { status: "verifying conversion" };
  const details = await describeBlob(root, quantized.blob.digest);
  const others = await storeSources(
    root,
    inspected.filter(({ kind }) => kind !== "model"),
    claims,
  );
  const layers = base?.layers.filter((layer) => !isKind(layer, "model"));
  return {
    base: base && layers && { ...base, layers },
    files: [{ kind: "model", details, ...quantized, ...(weights.from ? { from: weights.from } : {}) }, ...others],
  };
}

/** The single model among base and files. */
async function findWeights(
  root: string,
  { base, inspected }: { base: Base | undefined; inspected: InspectedSource[] },
): Promise<Weights & { readonly from?: string }> {
  const [layer] = layersOf(base?.layers ?? [], "model");
  if (base && layer) {
    const { fileType } = await describeBlob(root, layer.digest);
    return { label: base.name, paths: [blobPath(root, layer.digest)], fileType, from: base.name };
  }
  const models = inspected.filter(({ kind }) => kind === "model");
  const parts = models.some(({ part }) => part) ? sortParts(models) : models;
  const { label, details } = parts[0]!; // it exists: it was counted
  return { label, paths: parts.map(({ path }) => path), fileType: details.fileType };
}

interface Ingredients extends StoredWeights {
  readonly request: CreateRequest;
}

/** Layers: the model, the base's other layers unless the request replaces them, further files, texts. */
function pendingLayers({ base, files, request }: Ingredients): PendingLayer[] {
  const kept = (base?.layers ?? []).filter((layer) => !replacedBy(request).some((kind) => isKind(layer, kind)));
  const weights = files.map(({ kind, blob, isNew, from }): PendingLayer => {
    return { mediaType: mediaType(kind), ...blob, isNew, ...(from === undefined ? {} : { from }) };
  });
  const isModel = (layer: Layer): boolean => isKind(layer, "model");
  const layers = [...kept, ...weights].sort((a, b) => Number(isModel(b)) - Number(isModel(a)));
  const add = (kind: LayerKind, text: string): void => {
    const layer = pendingLayer(mediaType(kind), text);
    const isThere = layers.some((other) => other.mediaType === layer.mediaType && other.digest === layer.digest);
    if (!isThere) layers.push(layer); // skips a licence of the base
  };
  if (request.template) add("template", request.template);
  if (request.system) add("system", request.system);
  for (const license of request.licenses) add("license", license);
  const parameters = { ...base?.parameters, ...request.parameters };
  if (Object.keys(request.parameters).length > 0) add("params", JSON.stringify(parameters));
  if (request.messages.length > 0) add("messages", JSON.stringify(request.messages));
  return layers;
}

function replacedBy({ template, system, parameters, messages, draft }: CreateRequest): LayerKind[] {
  const kinds: LayerKind[] = [];
  if (template) kinds.push("template");
  if (system) kinds.push("system");
  if (Object.keys(parameters).length > 0) kinds.push("params");
  if (messages.length > 0) kinds.push("messages");
  if (draft) kinds.push("draft");
  return kinds;
}

const isKind = (layer: Layer, kind: LayerKind): boolean => layersOf([layer], kind).length > 0;

async function pendingConfig(parts: Ingredients & { root: string; layers: readonly Layer[] }): Promise<PendingLayer> {
  const { root, base, files, layers, request } = parts;
  const detailsOf = async (kind: "model" | "projector"): Promise<GgufDetails[]> => {
    const found = files.filter((file) => file.kind === kind).map((file) => file.details);
    for (const { digest } of layersOf(base?.layers ?? [], kind)) found.push(await describeBlob(root, digest));
    return found;
  };
  const [details] = await detailsOf("model");
  assert(details, "a model without weights");
  const otherFamilies = (await detailsOf("projector")).map(({ family }) => family);
  const config = imageConfig({ details, otherFamilies, layers, extras: extrasOf(request, base) });
  return pendingLayer(CONFIG_TYPE, JSON.stringify(config));
}

function extrasOf({ extras, capabilities, template }: CreateRequest, base: Base | undefined): ConfigExtras {
  const inherited = INHERITED.flatMap((key) => {
    const value = base?.config[key];
    return typeof value === "string" ? [[key, value] as const] : [];
  });
  const withOwn = (key: "capabilities" | "hearth_capabilities"): Record<string, readonly string[]> => {
    const before = base?.config[key];
    const all = [...new Set([...(Array.isArray(before) ? before.map(String) : []), ...capabilities])];
    return all.length > 0 ? { [key]: all } : {};
  };
  return {
    ...Object.fromEntries(inherited),
    ...(template ? { hearth_template: "own" } : {}),
    ...withOwn("capabilities"),
    ...withOwn("hearth_capabilities"),
    ...extras,
  };
}

function pendingLayer(type: string, text: string): PendingLayer {
  const bytes = new TextEncoder().encode(text);
  return { mediaType: type, digest: digestOf(bytes), size: bytes.length, bytes };
}

/** The manifest's part of a pending layer. */
function layerOf({ mediaType: type, digest, size, from, name }: PendingLayer): Layer {
  const named = { ...(from === undefined ? {} : { from }), ...(name === undefined ? {} : { name }) };
  return { mediaType: type, digest, size, ...named };
}

/** True if the blob did not exist before the request. */
async function putLayer(root: string, { digest, size, bytes, isNew = false }: PendingLayer): Promise<boolean> {
  if (!bytes || (await findBlob(root, digest)) === size) {
    await touchBlob(root, digest);
    return isNew;
  }
  await writeBlob(root, bytes);
  return true;
}
