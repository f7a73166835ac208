/**
 * From a GGUF file to a running engine: opens the file, chooses the architecture, loads it on a backend, builds the
 * tokenizer.
 */
import { loadProgram } from "../architectures/index.ts";
import { withoutChoices } from "../program/choices.ts";
import type { Backend, LoadOptions, Program, Session } from "../program/backend.ts";
import { loadOptionsFor } from "../backends/small.ts";
import type { EventLoop } from "./event-loop.ts";
import { AppError } from "../../base/index.ts";
import type { SnapshotStore } from "../formats/snapshots.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { openGgufFrom } from "../formats/gguf/read.ts";
import type { OpenSource } from "../formats/gguf/source.ts";
import { projectorGguf, repairGguf, withDraftBlock } from "../formats/gguf/repair/index.ts";
import { canShift, floatBytes } from "../program/sequence-state.ts";
import type { OpenGrammarThread } from "../text/sampling/grammar-threads.ts";
import { loadTokenizer, TEXT_KEYS } from "../text/tokenizer/load.ts";
import type { Tokenizer } from "../text/tokenizer/tokenizer.ts";
import { defaultCtxLen, defaultSlots, plannedSlots } from "./context-length.ts";
import { bodyOf, DIFFUSION_CTX_LEN, loadHead } from "./load-diffusion.ts";
import { loadDraft, openDraft } from "./load-draft.ts";
import { withDraftLayer } from "./load-draft-layer.ts";
import { forImages, type Projector } from "./load-memory.ts";
import { closedWith, loadReader, type Reader } from "./load-reader.ts";
import { decoderOf, type SpeechDecoder } from "./load-speech.ts";
import { Embedder, type EmbedEvent } from "./embedder.ts";
import { Engine, type TextEngine } from "./engine.ts";
import { factsOf, statedFacts, trainedCtxLen, type EngineInfo } from "./engine-info.ts";
import type { EngineParts } from "./engine-parts.ts";
import { makeGrammars } from "./grammars.ts";
import { openAdapters } from "./open-adapters.ts";
import { makeOpenedFiles, type OpenedFiles } from "./opened-files.ts";
import { poolingOf, statedPooling } from "./pooling.ts";
import { rankHeadOf, RANK_PROMPT } from "./rank-head.ts";
import type { SequenceEvent } from "./sequence.ts";
import { withRollback } from "./rollback.ts";

/** A context must hold a kept token, one to drop and one to generate. */
const CTX_LEN_MIN = 4;
/** Minimum context for a model with vision: images take more room than words. */
const VISION_CTX_LEN = 2048;
/**
 * An encoder keeps no cache, so a longer context costs nothing until a text fills it; requests have limits of their
 * own.
 */
const ENCODER_CTX_LEN = 2048;

/** Tokens that each slot can hold on any machine. */
const SHORT_TEXT = 1024;

/** Share of the KV cache's memory for prefixes outside slots; at most as much as the slots get. */
const PREFIX_SHARE = 1 / 4;

interface EngineOptions extends Omit<LoadOptions, "ctxLen" | "slots"> {
  readonly backend: Backend;
  readonly loop: EventLoop;
  /** Opens the model's files. */
  readonly open: OpenSource;
  /** Adapter files, in the order of application. */
  readonly adapters?: readonly string[];
  /** Adapters of other models over the same base: see open-adapters.ts. */
  readonly offers?: readonly string[] | undefined;
  /** File of the draft model: smaller, with the same vocabulary. */
  readonly draft?: string | undefined;
  /** Requested context length, or `auto`: limited by `cacheMemory`. The model's trained length is the maximum. */
  readonly ctxLen: number | "auto";
  /** Sequences that decode at once, or `auto`: on a GPU limited by `cacheMemory`. */
  readonly slots: number | "auto";
  /** Set if images can be decoded here, with the file that encodes them unless the model's own does. */
  readonly vision?: { readonly projector: string | undefined } | undefined;
  /** Bytes for the KV cache of a program; undefined if unknown. */
  readonly cacheMemory?: number | ((program: Program) => number | undefined) | undefined;
  /** The machine's memory for prefixes, which are kept there on a GPU too; default: `cacheMemory`. */
  readonly prefixMemory?: number | undefined;
  /** Memory that the process can still allocate; undefined: unknown. */
  readonly freeBytes?: (() => number) | undefined;
  /** Starts a thread for grammars of large schemas; undefined: all are compiled between steps. */
  readonly grammarThread?: OpenGrammarThread | undefined;
  /** Maximum prompt tokens per run. */
  readonly chunk: number;
  /**
   * Storage of prefixes that outlives the process; `layout` identifies the format of the bytes, apart from the files.
   * @param adapters files of the adapters that apply to every request
   */
  readonly snapshots?: ((layout: string, adapters: readonly string[]) => SnapshotStore) | undefined;
  readonly emit: (events: readonly SequenceEvent[]) => void;
  readonly onEmbed: (event: EmbedEvent) => void;
  /** Called when the model can no longer run; running requests have failed or will fail. */
  readonly onLost?: (error: Error) => void;
}

export interface LoadedEngine {
  readonly engine: TextEngine;
  readonly tokenizer: Tokenizer;
  /** Jinja source of the file's own chat template, if any, and texts of tokens that templates may print. */
  readonly chatTemplate: { readonly source: string | undefined; readonly bos: string; readonly eos: string };
  /** The prompt of a reranker, with `{query}` and `{document}`; undefined if special tokens separate the two. */
  readonly rankPrompt: string | undefined;
  readonly program: Program;
  /** Set for a model that transcribes speech; `engine` owns its session. */
  readonly decoder: SpeechDecoder | undefined;
  /** Set for a model whose encoder reads a prompt; `engine` owns its session. */
  readonly reader: Reader | undefined;
  /** Encodes images or recordings: from a separate file, or from another part of the model's own. */
  readonly projector: Projector | undefined;
  readonly info: EngineInfo;
  /** Reads of weights that do not fit in memory; undefined if all fit. */
  readonly streamed: Session["streamed"];
  /** Describes a change of its files since they were opened; after a change their content cannot be trusted. */
  readonly changed: () => string | undefined;
}

/** Loads a model. Errors name the file and the problem. */
export async function loadEngine(path: string, given: EngineOptions): Promise<LoadedEngine> {
  const begun = given.backend.begin?.(given);
  try {
    return await loadBegun(path, { ...given, begun });
  } finally {
    begun?.end();
  }
}

async function loadBegun(path: string, given: EngineOptions): Promise<LoadedEngine> {
  const files = makeOpenedFiles(given.open, given.begun?.opened);
  const options = { ...given, open: files.open };
  try {
    const file = openGgufFrom(options.open, path, { asTexts: TEXT_KEYS });
    const gguf = repairGguf(file);
    const bare = options.backend.program?.(gguf) ?? loadProgram(gguf);
    const { program: complete, fixed } = openAdapters(bare, gguf, { ...options, ...files });
    const { program: whole, projector, lacks } = forImages(bodyOf(complete), openProjector(file, options), options);
    const drafting = openDraft(options.draft, { model: gguf, open: files.open });
    const tokenizer = loadTokenizer(gguf.metadata, path, gguf.texts);
    const { arch } = whole.shape;
    const { dim } = whole.states;
    const ctxLenMax = ctxLenMaxOf(gguf, whole, options);
    const encoder = whole.logits === undefined;
    const cacheMemory = cacheMemoryOf(whole, options);
    const wanted = { ...options, cacheMemory, ctxLenMax, sees: projector !== undefined };
    const { ctxLen, slots } = await sequencesOf(whole, loadOptionsFor(whole, wanted));
    const program = withoutChoices(whole, ctxLen);
    const loadOptions = loadOptionsFor(program, { ...options, slots });
    const texts = { tokenizer, chatTemplate: chatTemplateOf(gguf, tokenizer), rankPrompt: rankPromptOf(gguf, encoder) };
    const pooling = poolingOf(gguf, { arch, encoder: encoder || whole.reader !== undefined });
    const rank = rankHeadOf(gguf, { arch, dim, types: tokenizer.family === "wpm" });
    await files.readAhead(options);
    const images = projector ? await imagesOf(projector) : rank?.secondText && { twoWayRows: 0 };
    const own = await loadSession(program, { ...loadOptions, ctxLen, images });
    const { streamed } = own;
    const reader = await loadReader(program, { ...loadOptions, ctxLen, beside: own.held });
    const head = await loadHead(complete, { ...loadOptions, body: own });
    goOnBeside(own, { ...options, files });
    const draft =
      drafting && (await loadDraft(drafting, { ...options, ctxLen, slots, verifies: own.verifies ?? false }));
    const parts = { ...loadOptions, ctxLen, program, session: own, isWanted: !draft?.model };
    const { session, layer, decoder } = decoderOf(await withDraftLayer(withDraftBlock(file), parts), parts, gguf);
    const info: EngineInfo = {
      arch,
      ...factsOf(session, draft, [layer?.session, layer?.head, head, reader?.session]),
      ctxLen,
      slots,
      ...statedFacts(gguf, arch),
      dim,
      embedsOnly: (encoder && !head) || statedPooling(gguf.metadata, arch) !== undefined,
      canFill: tokenizer.fill !== undefined && !head,
      ranks: rank?.kind,
      ...(program.adapters && { adapters: program.adapters }),
      ...lacks,
      media: [], // added by the caller that opens an image encoder
    };
    const engine = await makeEngine(head, {
      program,
      session: reader ? closedWith(reader, session) : session,
      loop: options.loop,
      tokenizer,
      grammars: makeGrammars({ tokenizer, vocabSize: program.shape.vocabSize, open: options.grammarThread }),
      vocabSize: program.shape.vocabSize,
      ctxLen,
      slots,
      ...boundsOf(session, { ...options, cacheMemory, slots, ctxLen }),
      snapshots: options.snapshots && ((layout) => options.snapshots!(layout, fixed)),
      draft: draft?.model,
      draftLayer: layer,
      embedder: new Embedder({ session, dim, encoder, ...reader, pooling, rank, emit: options.onEmbed }),
      emit: options.emit,
    });
    return { engine, ...texts, program, decoder, reader, projector, info, streamed, changed: files.changed };
  } catch (error) {
    files.close();
    throw error;
  }
}

/** @param head of a diffusion model */
async function makeEngine(
  head: Session | undefined,
  { program, ...parts }: EngineParts & { readonly program: Program },
): Promise<TextEngine> {
  const { diffusion: traits, states, steps } = program;
  if (!head || !traits) return new Engine({ ...parts, fixedContext: !canShift(steps) });
  const { DiffusionEngine } = await import("./diffusion-engine.ts"); // imported for such models only
  return new DiffusionEngine({ ...parts, head, traits, dim: states.dim });
}

/** Starts the work that continues while the session runs. */
function goOnBeside(own: Session, { files, onLost }: Pick<EngineOptions, "onLost"> & { files: OpenedFiles }): void {
  void own.lost?.then(onLost);
  if (own.readsFiles) void files.moveToHugePages();
}

/** A session that can verify drafts even if its slots continue only from checkpoints. */
async function loadSession(program: Program, options: LoadOptions & { backend: Backend }): Promise<Session> {
  const session = await options.backend.load(program, options);
  if (!session.verifies || !session.checkpoints) return session;
  return withRollback(session, { states: program.states.dim, logits: program.logits?.dim ?? 0 });
}

interface Sizes extends Pick<EngineOptions, "prefixMemory" | "freeBytes" | "chunk"> {
  readonly cacheMemory: number | undefined;
  readonly slots: number;
  readonly ctxLen: number;
}

/** Limits of memory and of runs. */
const boundsOf = (
  session: Session,
  { prefixMemory, cacheMemory, freeBytes, chunk, slots, ctxLen }: Sizes,
): Pick<EngineParts, "kvBytes" | "prefixBytes" | "freeBytes" | "limits"> => ({
  kvBytes: kvBytesOf(session, { cacheMemory, slots, ctxLen }),
  prefixBytes: Math.min(session.bytes.kv, (prefixMemory ?? cacheMemory ?? 0) * PREFIX_SHARE),
  freeBytes,
  limits: { chunkAlone: chunk, chunkShared: chunk },
});

/** Bytes for the tokens of all slots together: enough for a short text in each, however little memory there is. */
function kvBytesOf(
  { growth, bytes }: Session,
  { cacheMemory = Infinity, slots, ctxLen }: { cacheMemory?: number | undefined; slots: number; ctxLen: number },
): number {
  const { tokenBytes = 0 } = growth ?? {};
  const least = slots * Math.min(SHORT_TEXT, ctxLen / 4) * tokenBytes;
  const constant = Math.max(0, bytes.kv - slots * ctxLen * tokenBytes);
  return Math.max(cacheMemory - constant, least);
}

/** The projector of a model; undefined if the one in its own file is damaged, because its text part may be valid. */
function openProjector(file: Gguf, { vision, open }: EngineOptions): Projector | undefined {
  if (!vision) return undefined;
  if (vision.projector !== undefined) {
    const gguf = projectorGguf(openGgufFrom(open, vision.projector));
    return gguf && { gguf, isOwn: true };
  }
  try {
    const gguf = projectorGguf(file);
    return gguf && { gguf, isOwn: false };
  } catch (error) {
    if (error instanceof AppError && error.code === "bad_file") return undefined;
    throw error;
  }
}

/**
 * The backend's option for a model with that projector; undefined if the projector cannot run here, which its own load
 * reports.
 */
async function imagesOf({ gguf }: Projector): Promise<LoadOptions["images"]> {
  // Imported for models with a projector only
  const { projectorKind, twoWayRowsOf } = await import("../vision/index.ts");
  const hears = projectorKind(gguf.metadata, "audio") !== "";
  try {
    return { twoWayRows: twoWayRowsOf(gguf) };
  } catch (error) {
    if (error instanceof AppError) return hears ? { twoWayRows: 0 } : undefined;
    throw error;
  }
}

/** The longest useful context. With `auto` it ends where a backend would lack kernels. */
function ctxLenMaxOf(gguf: Gguf, program: Program, { ctxLen, backend }: EngineOptions): number {
  const trained = trainedCtxLen(gguf, program.shape.arch);
  if (program.diffusion && ctxLen === "auto") return Math.min(trained, DIFFUSION_CTX_LEN);
  if (program.reader) return Math.min(trained, program.memory?.rows ?? 0); // holds for prompts, too
  const { choosesAbove = Infinity } = program;
  const lacks = (backend.missing?.(program) ?? []).includes("choosePositions");
  return ctxLen === "auto" && lacks ? Math.min(trained, choosesAbove) : trained;
}

const cacheMemoryOf = (program: Program, { cacheMemory }: EngineOptions): number | undefined =>
  typeof cacheMemory === "function" ? cacheMemory(program) : cacheMemory;

type Wanted = Pick<EngineOptions, "backend" | "ctxLen" | "slots" | "precise" | "small" | "kvType"> & {
  readonly cacheMemory: number | undefined;
  readonly ctxLenMax: number;
  /** True for a model with an image encoder. */
  readonly sees: boolean;
};

/** The number of sequences and their context length. */
async function sequencesOf(program: Program, wanted: Wanted): Promise<{ ctxLen: number; slots: number }> {
  const { cacheMemory: bytes, backend, ctxLenMax, sees } = wanted;
  if (program.writesSpeech) return { ctxLen: ctxLenMax, slots: 1 };
  const onGpu = backend.name === "webgpu";
  const slotBytes = (await backend.slotBytes?.(program, wanted)) ?? floatBytes(program.steps);
  const slots = wanted.slots === "auto" ? plannedSlots(slotBytes, { bytes, onGpu }) : wanted.slots;
  const preferred =
    wanted.ctxLen === "auto" ? defaultCtxLen(slotBytes, { bytes: bytes ?? 0, slots, onGpu }) : wanted.ctxLen;
  const encodes = program.logits === undefined && !program.diffusion;
  const least = Math.max(sees ? VISION_CTX_LEN : 0, encodes ? ENCODER_CTX_LEN : 0);
  const ctxLen = Math.max(CTX_LEN_MIN, Math.min(Math.max(preferred, least), ctxLenMax));
  return { ctxLen, slots: wanted.slots === "auto" ? defaultSlots(slotBytes, { bytes, ctxLen, onGpu }) : slots };
}

/** The file's own prompt, else the default for models that rank by answering. */
function rankPromptOf({ metadata }: Gguf, encoder: boolean): string | undefined {
  const own = metadata.get("tokenizer.chat_template.rerank");
  if (typeof own === "string") return own;
  return encoder ? undefined : RANK_PROMPT;
}

function chatTemplateOf({ metadata, path }: Gguf, tokenizer: Tokenizer): LoadedEngine["chatTemplate"] {
  const template = metadata.get("tokenizer.chat_template") ?? "";
  if (typeof template !== "string") {
    throw new AppError("bad_file", `${path}: 'tokenizer.chat_template': expected text, got ${typeof template}`);
  }
  const text = (id: number | undefined): string =>
    id === undefined ? "" : tokenizer.detokenize([id], { special: true });
  return { source: template || undefined, bos: text(tokenizer.bos), eos: text(tokenizer.eos) };
}
