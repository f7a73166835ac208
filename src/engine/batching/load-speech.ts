/** The decoder of a model that transcribes speech: it runs for recordings only, one at a time. */
import type { Program, Session } from "../program/backend.ts";
import { AppError } from "../../base/index.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { getNumbers } from "../formats/gguf/keys.ts";

/** Four times the size of the largest vocabulary. */
const IDS_MAX = 2 ** 18;

export interface SpeechDecoder {
  readonly session: Session;
  readonly ctxLen: number;
  /** As in `SpeechModel`. */
  readonly suppressed: readonly number[];
  readonly suppressedFirst: readonly number[];
}

interface Loaded {
  readonly program: Program;
  readonly ctxLen: number;
}

/**
 * The session for texts, which refuses them if the model only transcribes, and the decoder. Throws `bad_file` if a list
 * has entries other than ids.
 */
export function decoderOf<T extends { readonly session: Session }>(
  running: T,
  { program, ctxLen }: Loaded,
  gguf: Gguf,
): T & { readonly decoder?: SpeechDecoder } {
  if (!program.writesSpeech) return running;
  const { topK: _topK, runWithStates: _states, slices: _slices, ...rest } = running.session;
  const refuse = async (): Promise<never> => {
    throw new AppError("bad_request", "the model transcribes speech: it has no embeddings and no answers");
  };
  const texts = { run: refuse, states: refuse, shift: () => {}, copy: () => {} };
  const session: Session = { ...rest, ...texts, close: () => running.session.close() };
  return { ...running, session, decoder: speechDecoder(running.session, ctxLen, gguf) };
}

function speechDecoder(session: Session, ctxLen: number, gguf: Gguf): SpeechDecoder {
  const ids = (name: string): number[] => {
    const key = `whisper.${name}`;
    const found = getNumbers(gguf.metadata, key, Int32Array.of());
    if (found.length <= IDS_MAX && found.every((id) => Number.isInteger(id) && id >= 0)) return Array.from(found);
    throw new AppError(
      "bad_file",
      `${gguf.path}: '${key}': expected at most ${IDS_MAX} ids, got ${found.length} numbers`,
    );
  };
  return { session, ctxLen, suppressed: ids("suppress_tokens"), suppressedFirst: ids("begin_suppress_tokens") };
}
