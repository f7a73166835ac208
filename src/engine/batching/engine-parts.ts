/** The parts of an engine. */
import type { Session } from "../program/backend.ts";
import type { EventLoop } from "./event-loop.ts";
import type { SnapshotStore } from "../formats/snapshots.ts";
import type { Tokenizer } from "../text/tokenizer/tokenizer.ts";
import type { DraftLayer } from "./draft-layer.ts";
import type { DraftModel } from "./draft.ts";
import type { Embedder } from "./embedder.ts";
import type { Grammars } from "./grammars.ts";
import type { ScheduleLimits } from "./scheduler.ts";
import type { SequenceEvent } from "./sequence.ts";

export interface EngineParts {
  readonly session: Session;
  readonly loop: EventLoop;
  readonly tokenizer: Tokenizer;
  readonly grammars: Grammars;
  readonly vocabSize: number;
  readonly ctxLen: number;
  readonly slots: number;
  /** True if answers end where the context is full. */
  readonly fixedContext?: boolean | undefined;
  /** The maximum size of runs, however fast they are. */
  readonly limits: ScheduleLimits;
  /** Maximum bytes of all slots together, if their session lets them grow; undefined: unlimited. */
  readonly kvBytes?: number | undefined;
  /** Memory that the process can still allocate; undefined: unknown. */
  readonly freeBytes?: (() => number) | undefined;
  /** Maximum bytes of prefixes kept outside slots. */
  readonly prefixBytes: number;
  /**
   * Storage of prefixes that outlives the process; `layout` identifies the format of the bytes, apart from the weights.
   */
  readonly snapshots?: ((layout: string) => SnapshotStore) | undefined;
  readonly embedder: Embedder;
  /** Drafts for a session that verifies. */
  readonly draft?: DraftModel | undefined;
  /** Drafts for a session that keeps its states. */
  readonly draftLayer?: DraftLayer | undefined;
  /** Receives all events of one step together. */
  readonly emit: (events: readonly SequenceEvent[]) => void;
}
