/** The encoder of a model that reads a prompt as a whole, and attends to its rows while it answers (T5). */
import type { Backend, LoadOptions, Program, Session } from "../program/backend.ts";
import { AppError } from "../../base/index.ts";
import type { EventLoop } from "./event-loop.ts";
import type { PromptSegment } from "./prompt.ts";
import type { ReadPrompt } from "./sequence.ts";

export interface Reader {
  /** Runs one batch after another; `read` and the embedder share it. */
  readonly session: Session;
  /** Values per row. */
  readonly dim: number;
  /** It reads texts as a whole. */
  readonly encoder: true;
  /** Encodes a prompt; at most as many ids as the context has positions. Throws `bad_request` without ids. */
  read(ids: Int32Array, signal: AbortSignal): Promise<{ prompt: readonly PromptSegment[]; read: ReadPrompt }>;
}

interface Options extends LoadOptions {
  readonly backend: Backend;
  readonly loop: EventLoop;
}

/** Undefined for a model that continues its prompt. */
export async function loadReader({ reader }: Program, options: Options): Promise<Reader | undefined> {
  if (!reader) return undefined;
  const { backend, loop, ...rest } = options;
  const { program, start: token } = reader;
  const session = inTurn(await backend.load(program, { ...rest, slots: 1, onProgress: () => {} }));
  return {
    session,
    dim: program.states.dim,
    encoder: true,
    async read(ids, signal) {
      if (ids.length === 0) throw new AppError("bad_request", "the prompt has no tokens");
      const from = loop.nowNs();
      const pause = async (): Promise<void> => {
        await loop.nextTurn();
        if (signal.aborted) throw new AppError("cancelled", "prompt: cancelled by the caller");
      };
      const memory = await session.states([{ slot: 0, start: 0, tokens: ids, states: "all" }], pause);
      const media = { hash: `prompt ${ids.join()}`, rows: 1, vectors: new Float32Array(), isTwoWay: false };
      return {
        prompt: [{ kind: "media", media: { ...media, memory, token } }],
        read: { ids, evalNs: loop.nowNs() - from },
      };
    },
  };
}

/** The engine's session, which closes the reader's as well. */
export const closedWith = (reader: Reader, session: Session): Session => ({
  ...session,
  close() {
    session.close();
    reader.session.close();
  },
});

/** A session whose results stay valid, and whose runs wait for the one before. */
function inTurn(session: Session): Session {
  let last: Promise<unknown> = Promise.resolve();
  return {
    ...session,
    close: () => session.close(),
    states(batch, pause) {
      const run = last.then(async () => (await session.states(batch, pause)).slice());
      last = run.catch(() => {});
      return run;
    },
  };
}
