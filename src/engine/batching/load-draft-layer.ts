/** Opens the draft layer of a model's own file, and makes the model's session keep the states that it needs. */
import { loadDraftLayer } from "../architectures/index.ts";
import type { Backend, LoadOptions, Program, Session } from "../program/backend.ts";
import { AppError } from "../../base/index.ts";
import { headOf } from "../program/head.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import type { DraftLayer } from "./draft-layer.ts";
import { keepStates } from "./kept-states.ts";

/** A head keeps no sequence state. */
const HEAD = { ctxLen: 32, slots: 1 } as const;

interface Loaded {
  /** The model's session, which keeps states if there is a draft layer. */
  readonly session: Session;
  readonly layer: DraftLayer | undefined;
}

/** Optional: without a draft layer, or if it cannot run, the model answers without it. */
export async function withDraftLayer(
  gguf: Gguf,
  {
    program,
    session,
    backend,
    isWanted,
    ...options
  }: LoadOptions & {
    readonly program: Program;
    readonly session: Session;
    readonly backend: Backend;
    /** False: another method drafts. */
    readonly isWanted: boolean;
  },
): Promise<Loaded> {
  const made: Session[] = [];
  const load = async (each: Program, sizes: Partial<LoadOptions>): Promise<Session> => {
    const one = await backend.load(each, { ...options, onProgress: () => {}, ...sizes });
    made.push(one);
    return one;
  };
  try {
    const { held: beside } = session;
    const isMapped = !["wasm", "webgpu"].includes(backend.name);
    const shares = isMapped || beside !== undefined; // otherwise each session has weights of its own
    const own = isWanted && shares && session.verifies ? loadDraftLayer(gguf) : undefined;
    if (!own || (backend.missing?.(own) ?? []).length > 0) return { session, layer: undefined };
    const { dim } = program.states;
    const headFor = async (each: Session, of: Program): Promise<Session | undefined> =>
      each.runWithStates ? undefined : load(headOf(of), { ...HEAD, beside });
    const kept = keepStates(session, { head: await headFor(session, program), dim });
    const drafts = await load(own, { beside });
    const layer: DraftLayer = {
      session: drafts,
      head: await headFor(drafts, own),
      dim,
      vocabSize: own.shape.vocabSize,
      ctxLen: options.ctxLen,
      kept,
    };
    return { session: kept.session, layer };
  } catch (error) {
    for (const each of made) each.close();
    if (!(error instanceof AppError) || error.code === "cancelled") throw error;
    return { session, layer: undefined };
  }
}
