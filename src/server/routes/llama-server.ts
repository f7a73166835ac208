/**
 * Routes of llama-server that its clients read: `/props`, `/slots`, `/lora-adapters`, `/apply-template` and
 * `/embedding`. A request that names no model means the one in memory that expires last.
 */
import { basename } from "node:path";
import { AppError } from "../../base/index.ts";
import type { LoadedModel } from "../../runtime/portable.ts";
import { readJson, readRequest } from "../http/body.ts";
import { decode } from "../http/decode.ts";
import { encodeJson } from "../http/json-pieces.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { findModel, loadedModel, requireModel } from "../models/find-model.ts";
import { ChatCompletionBody, toChat } from "../openai/chat.ts";
import { NativeEmbeddingBody, toInputs } from "../openai/embedding.ts";
import { nativeSettings } from "../openai/native-settings.ts";
import { limitsOf } from "../openai/settings.ts";
import { get, post } from "./route.ts";
import { readLoraList } from "../answers/lora-fields.ts";
import { LoraList, ScaleBody } from "../schema/lora.ts";
import type { RouteDeps } from "./deps.ts";

const API = "native";
/** The normalization that all embeddings have. */
const EUCLIDEAN = 2;

const EMBEDDING = { api: API, summary: "Embeddings of texts, each in a list", body: NativeEmbeddingBody } as const;

export const llamaServerRoutes = [
  get("/props", props, { api: API, summary: "A model's context, slots and template" }),
  get("/slots", slots, { api: API, summary: "The slots of the models in memory" }),
  get("/lora-adapters", adapters, { api: API, summary: "The adapters that requests of a model may choose" }),
  post("/lora-adapters", scale, {
    api: API,
    summary: "Sets the adapters of a model's requests that choose none",
    body: LoraList,
  }),
  post("/apply-template", applyTemplate, {
    api: API,
    summary: "The prompt of a conversation",
    body: ChatCompletionBody,
  }),
  post("/embedding", embed, EMBEDDING),
  post("/embeddings", embed, EMBEDDING),
];

/** The model in a query, else the loaded one. Throws `bad_request` if there is neither. */
const nameIn = (deps: RouteDeps, { url }: Request): string =>
  requireModel(new URL(url).searchParams.get("model") ?? loadedModel(deps));

async function props(deps: RouteDeps, { request }: Exchange): Promise<Reply> {
  const ref = await findModel(deps.store, nameIn(deps, request));
  const facts = await deps.inspect(ref);
  const loaded = deps.runtime.loaded().find((each) => each.name === ref.displayName);
  const nCtx = loaded?.ctxLen ?? 0;
  return {
    kind: "json",
    body: {
      default_generation_settings: { n_ctx: nCtx, params: nativeSettings({ ...facts?.parameters, ...ref.parameters }) },
      total_slots: loaded ? slotCount(deps, loaded) : 0,
      model_path: ref.displayName,
      model_alias: ref.displayName,
      model_ftype: facts?.gguf.fileType ?? "unknown",
      chat_template: await templateOf(deps, ref.displayName),
      modalities: {
        vision: facts?.capabilities.includes("vision") ?? false,
        video: false,
        audio: facts?.capabilities.includes("audio") ?? false,
      },
      build_info: `hearth-${deps.version}`,
      is_sleeping: loaded === undefined,
      endpoint_slots: true,
      endpoint_props: false,
      endpoint_metrics: true,
    },
  };
}

/** Loads the readers of model files and templates on first use. */
async function templateOf({ store }: RouteDeps, name: string): Promise<string> {
  const { readHeader } = await import("../../engine/formats/index.ts");
  const { effectiveTemplate } = await import("../models/effective-template.ts");
  const entry = await store.load(name);
  const { metadata } = await readHeader(entry.paths.model, { arrayItemsMax: 0 });
  return effectiveTemplate(entry, metadata).text;
}

/** Capacity is counted in tokens of all slots together. */
function slotCount({ runtime }: RouteDeps, { name, ctxLen }: LoadedModel): number {
  const room = runtime.activity().models.find((each) => each.name === name)?.kv.room ?? 0;
  return Math.max(1, Math.round(room / ctxLen));
}

function slots(deps: RouteDeps, { request }: Exchange): Reply {
  const { searchParams } = new URL(request.url);
  const wanted = searchParams.get("model");
  const { models } = deps.runtime.activity();
  const body = deps.runtime.loaded().flatMap((loaded) => {
    if (wanted !== null && loaded.name !== wanted && loaded.name !== `${wanted}:latest`) return [];
    const running = models.find(({ name }) => name === loaded.name)?.running ?? 0;
    return Array.from({ length: slotCount(deps, loaded) }, (_, id) => ({
      id,
      model: loaded.name,
      n_ctx: loaded.ctxLen,
      speculative: false,
      is_processing: id < running,
    }));
  });
  if (searchParams.get("fail_on_no_slot") === "1" && body.every((slot) => slot.is_processing)) {
    throw new AppError("busy", "no slot available");
  }
  return { kind: "json", body };
}

async function adapters(deps: RouteDeps, { request }: Exchange): Promise<Reply> {
  const found = await deps.runtime.adapters(await findModel(deps.store, nameIn(deps, request)));
  return { kind: "json", body: found.map(({ path, ...rest }) => ({ ...rest, path: basename(path) })) };
}

/** Adapters that the list leaves out get the scale 0, as llama-server does it. */
async function scale(deps: RouteDeps, { request, note }: Exchange): Promise<Reply> {
  const { adapters: list = [] } = decode(ScaleBody, { adapters: await readJson(request) });
  const model = nameIn(deps, request);
  note({ model });
  await deps.runtime.scaleAdapters(await findModel(deps.store, model), readLoraList(list, "adapters"));
  return { kind: "json", body: { success: true } };
}

/** One list for each text, with one vector, as llama-server gives pooled embeddings. */
async function embed(deps: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, NativeEmbeddingBody);
  const model = requireModel(body.model || loadedModel(deps));
  note({ model });
  if ((body.embd_normalize ?? EUCLIDEAN) !== EUCLIDEAN) {
    const got = body.embd_normalize;
    throw new AppError("bad_request", `embd_normalize: expected ${EUCLIDEAN}, vectors of unit length, got ${got}`);
  }
  const inputs = toInputs(body.input ?? body.content);
  const ref = await findModel(deps.store, model);
  const result = await deps.runtime.embed({ model, ref, inputs, options: {}, signal, ...limitsOf(body) });
  note({ prompt_eval_count: result.promptEvalCount });
  const list = result.embeddings.map((embedding, index) => ({ index, embedding: [embedding] }));
  return { kind: "json", body: await encodeJson(list, signal) };
}

async function applyTemplate(deps: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, ChatCompletionBody);
  const model = requireModel(body.model || loadedModel(deps));
  note({ model });
  const ref = await findModel(deps.store, model);
  const { left: _, ...asked } = toChat(body);
  return { kind: "json", body: { prompt: await deps.runtime.render({ model, ref, ...asked, options: {}, signal }) } };
}
