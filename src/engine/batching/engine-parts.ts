/** What an engine is made of. */
import type { Session } from "../program/backend.ts";
import type { EventLoop } from "./event-loop.ts";
import type { SnapshotStore } from "../formats/snapshots.ts";
import type { GrammarCompiler } from "../text/sampling/grammar.ts";
import type { Tokenizer } from "../text/tokenizer/tokenizer.ts";
import type { DraftLayer } from "./draft-layer.ts";
import type { DraftModel } from "./draft.ts";
import type { Embedder } from "./embedder.ts";
import type { ScheduleLimits } from "./scheduler.ts";
import type { SequenceEvent } from "./sequence.ts";

export interface EngineParts {
  readonly session: Session;
  readonly loop: EventLoop;
  readonly tokenizer: Tokenizer;
  /** Made when the first request with a format arrives. */
  readonly grammars: () => Promise<GrammarCompiler>;
  readonly vocabSize: number;
  readonly ctxLen: number;
  readonly slots: number;
  /** The most that runs take, however fast they are. */
  readonly limits: ScheduleLimits;
  /** Most bytes that slots take together, where their session lets them grow; undefined: as many as they have. */
  readonly kvBytes?: number | undefined;
  /** Memory that the process could still take; undefined: nobody knows. */
  readonly freeBytes?: (() => number) | undefined;
  /** Most bytes of prefixes that are kept beside slots. */
  readonly prefixBytes: number;
  /** Where they outlive the process; told what their bytes depend on beside the weights. */
  readonly snapshots?: ((layout: string) => SnapshotStore) | undefined;
  readonly embedder: Embedder;
  /** Guesses for a session that verifies. */
  readonly draft?: DraftModel | undefined;
  /** Guesses for one that keeps its states. */
  readonly draftLayer?: DraftLayer | undefined;
  /** Receives all events of one step at once. */
  readonly emit: (events: readonly SequenceEvent[]) => void;
}
