/**
 * From a GGUF file to a running engine: open, choose the architecture, plan it on a backend, build the tokenizer.
 */
import { loadProgram } from "../arch/index.ts";
import type { Backend, LoadOptions, Program, Session } from "../backend/backend.ts";
import type { EventLoop } from "../base/event-loop.ts";
import { AppError } from "../base/errors.ts";
import type { Gguf } from "../gguf/gguf.ts";
import { openGgufFrom } from "../gguf/read.ts";
import type { OpenSource } from "../gguf/source.ts";
import { repairGguf } from "../gguf/repair/index.ts";
import { getNumber } from "../gguf/keys.ts";
import type { GrammarCompiler } from "../sampling/grammar.ts";
import { loadTokenizer, vocabularyForGrammar } from "../tokenizer/load.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { defaultCtxLen } from "./context-length.ts";
import { Embedder, type EmbedEvent } from "./embedder.ts";
import { Engine } from "./engine.ts";
import { poolingOf } from "./pooling.ts";
import { rankHeadOf, RANK_PROMPT, type RankHead } from "./rank-head.ts";
import type { SequenceEvent } from "./sequence.ts";

/** Prompt tokens of one run while other sequences wait for their next token: at most a second on a slow machine. */
const CHUNK_SHARED = 64;

/** A context must hold a kept token, one to drop and one to make. */
const CTX_LEN_MIN = 4;
/** An encoder keeps nothing, so that a longer context costs nothing until a text fills it; requests limit their own. */
const ENCODER_CTX_LEN = 2048;

interface EngineOptions extends Omit<LoadOptions, "ctxLen"> {
  readonly backend: Backend;
  readonly loop: EventLoop;
  /** Opens the model's files. */
  readonly open: OpenSource;
  /** Adapter files, laid over the model in this order. */
  readonly adapters?: readonly string[];
  /** Wished context length, or `auto`: as `cacheMemory` allows. The model's trained length is the limit. */
  readonly ctxLen: number | "auto";
  /** Bytes that the KV cache may take; none where nobody knows. */
  readonly cacheMemory?: number | undefined;
  /** Prompt tokens of one run. */
  readonly chunk: number;
  readonly emit: (events: readonly SequenceEvent[]) => void;
  readonly onEmbed: (event: EmbedEvent) => void;
  /** The model can do nothing any more; what ran has failed or is about to. */
  readonly onLost?: (error: Error) => void;
}

/** What the server wants to know of a loaded model. */
export interface EngineInfo {
  readonly arch: string;
  readonly backend: string;
  readonly device: string;
  readonly ctxLen: number;
  /** Context length of training: the most that `ctxLen` can be; Infinity where the file does not say. */
  readonly ctxLenTrained: number;
  /** Values of an embedding. */
  readonly dim: number;
  /** Made for embedding only. */
  readonly embedsOnly: boolean;
  readonly bytes: { readonly weights: number; readonly kv: number; readonly scratch: number };
  /** How many of them lie on a GPU. */
  readonly vramBytes: number;
  /** How many of the layers, the output counted as one, run on a GPU; undefined: none. */
  readonly gpuLayers: Session["gpuLayers"];
  /** Scores documents for a query, by numbers of that kind; undefined: it does not. */
  readonly ranks: RankHead["kind"] | undefined;
  /** The model has markers for filling in the middle. */
  readonly canFill: boolean;
  /** Kinds of media that a prompt may hold beside text. */
  readonly media: readonly MediaKind[];
}

type MediaKind = "image";

export interface LoadedEngine {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  /** Jinja source of the file's own chat template, where it has one, and texts of tokens that templates may print. */
  readonly chatTemplate: { readonly source: string | undefined; readonly bos: string; readonly eos: string };
  /** The prompt of a model that ranks, with `{query}` and `{document}`; undefined where special tokens part them. */
  readonly rankPrompt: string | undefined;
  readonly info: EngineInfo;
}

/** Loads a model. Errors name the file and what is wrong with it. */
export async function loadEngine(path: string, options: EngineOptions): Promise<LoadedEngine> {
  const gguf = repairGguf(openGgufFrom(options.open, path));
  const adapters: Gguf[] = [];
  try {
    for (const adapter of options.adapters ?? []) adapters.push(openGgufFrom(options.open, adapter));
    const program = loadProgram(gguf, adapters);
    const tokenizer = loadTokenizer(gguf.metadata, path);
    const arch = program.shape.arch;
    const ctxLenTrained = getNumber(gguf.metadata, `${arch}.context_length`, Infinity);
    const encoder = program.logits === undefined;
    const wished = wishedCtxLen(program, options);
    const ctxLen = Math.max(CTX_LEN_MIN, Math.min(wished, ctxLenTrained));
    const source = chatTemplateOf(gguf);
    const pooling = poolingOf(gguf, { arch, encoder });
    const rank = rankHeadOf(gguf, { arch, dim: program.states.dim });
    const session = await options.backend.load(program, { ...options, ctxLen });
    void session.lost?.then(options.onLost);
    const text = (id: number | undefined): string =>
      id === undefined ? "" : tokenizer.detokenize([id], { special: true });
    const info: EngineInfo = {
      arch,
      backend: session.backend,
      device: session.device,
      ctxLen,
      ctxLenTrained,
      dim: program.states.dim,
      embedsOnly: encoder || gguf.metadata.has(`${arch}.pooling_type`),
      bytes: session.bytes,
      vramBytes: session.vramBytes ?? 0,
      gpuLayers: session.gpuLayers,
      canFill: tokenizer.fill !== undefined,
      ranks: rank?.kind,
      media: [], // no encoder of images runs here
    };
    const engine = new Engine({
      session,
      loop: options.loop,
      tokenizer,
      grammars: once(async () => {
        const { makeGrammarCompiler } = await import("../sampling/grammar.ts"); // pages fetch it when it is wanted
        return makeGrammarCompiler({ ...vocabularyForGrammar(tokenizer), vocabSize: program.shape.vocabSize });
      }),
      vocabSize: program.shape.vocabSize,
      ctxLen,
      slots: options.slots,
      limits: { chunkAlone: options.chunk, chunkShared: Math.min(options.chunk, CHUNK_SHARED) },
      embedder: new Embedder({ session, pooling, rank, dim: program.states.dim, encoder, emit: options.onEmbed }),
      emit: options.emit,
    });
    const chatTemplate = { source, bos: text(tokenizer.bos), eos: text(tokenizer.eos) };
    return { engine, tokenizer, chatTemplate, rankPrompt: rankPromptOf(gguf, encoder), info };
  } catch (error) {
    for (const file of [gguf, ...adapters]) file.close();
    throw error;
  }
}

/** What the context would be if the model had been trained for it. */
function wishedCtxLen(program: Program, { ctxLen, cacheMemory = 0, slots, backend }: EngineOptions): number {
  const onGpu = backend.name === "webgpu";
  const wished = ctxLen === "auto" ? defaultCtxLen(program, { bytes: cacheMemory, slots, onGpu }) : ctxLen;
  return program.logits === undefined ? Math.max(wished, ENCODER_CTX_LEN) : wished;
}

/** Of the file, else that of the models which are known to rank by answering. */
function rankPromptOf({ metadata }: Gguf, encoder: boolean): string | undefined {
  const own = metadata.get("tokenizer.chat_template.rerank");
  if (typeof own === "string") return own;
  return encoder ? undefined : RANK_PROMPT;
}

function chatTemplateOf({ metadata, path }: Gguf): string | undefined {
  const template = metadata.get("tokenizer.chat_template") ?? "";
  if (typeof template === "string") return template || undefined;
  throw new AppError("bad_file", `${path}: 'tokenizer.chat_template': expected text, got ${typeof template}`);
}

function once(make: () => Promise<GrammarCompiler>): () => Promise<GrammarCompiler> {
  let made: Promise<GrammarCompiler> | undefined;
  return () => (made ??= make());
}
