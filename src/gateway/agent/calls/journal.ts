/**
 * A run's journal: the rounds of its turn, and the calls of tool servers in them. Each step is stored before it is
 * acted on, and only while this process owns the run.
 */
import type { Clock, Fields } from "../../../base/index.ts";
import { execute, insertAll, queryAll, type Transaction, type Store, type Value } from "../../database/store.ts";
import type { Message, ToolCall } from "../../../runtime/portable.ts";
import type { TaintedText } from "../boundary/tainted-text.ts";
import { digestOf } from "./digest.ts";
import type { ServerTool } from "./server-tools.ts";

/** `unknown`: the call was begun, and its process ended before its result. */
type CallState = "planned" | "begun" | "ended" | "unknown";

export interface CallRow {
  readonly id: string;
  readonly round: number;
  /** Among the calls of its round. */
  readonly place: number;
  /** `SERVER/TOOL`. */
  readonly tool: string;
  readonly arguments: Fields;
  readonly digest: string;
  readonly isRepeatable: boolean;
  readonly state: CallState;
  /** Null before its end. */
  readonly result: TaintedText | null;
  /** Names the approval; null: it needs none. */
  readonly code: string | null;
  readonly expiresAt: number | null;
  readonly verdict: "yes" | "no" | null;
  /** Digest of the call that the operator approved. */
  readonly approvedDigest: string | null;
}

/** A round that an earlier attempt of the turn began. */
export interface KnownRound {
  /** The model's message, with its calls. */
  readonly message: Message;
  readonly calls: readonly CallRow[];
}

export interface JournalParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly runId: string;
  /** Throws if another process has the run by now. */
  readonly checkOwner: () => Transaction<void>;
}

/** Longest wait for an approval. */
const APPROVAL_MS = 7 * 24 * 3_600_000;
/** Letters and digits that do not look alike and spell no words. */
const CODE_LETTERS = "23456789BCDFGHJKLMNPQRSTVWXZ";
const CODE_LENGTH = 8;

export class Journal {
  readonly #parts: JournalParts;

  constructor(parts: JournalParts) {
    this.#parts = parts;
  }

  /** The rounds of earlier attempts, in order. */
  load(): Promise<readonly KnownRound[]> {
    const { store, runId } = this.#parts;
    return store.read(() => loadRounds(runId));
  }

  /**
   * Stores the model's message before its calls are made.
   * @param chosen the calls of tool servers in it, with their positions
   */
  async plan(
    round: number,
    message: Message,
    chosen: readonly { readonly place: number; readonly call: ToolCall; readonly tool: ServerTool }[],
  ): Promise<readonly CallRow[]> {
    const { store, clock, runId, checkOwner } = this.#parts;
    const now = clock.now();
    const calls = chosen.map(({ place, call, tool }) => plannedCall({ round, place, call, tool, now }));
    await store.write(function* () {
      yield* checkOwner();
      yield* insertAll({
        table: "turn_rounds",
        columns: ["run_id", "round", "message"],
        rows: [[runId, round, JSON.stringify(message)]],
      });
      yield* insertAll({
        table: "tool_calls",
        columns: NEW_COLUMNS,
        rows: calls.map((call) => {
          const what = [call.tool, JSON.stringify(call.arguments), call.digest, Number(call.isRepeatable)];
          return [call.id, runId, round, call.place, ...what, call.state, now, call.code, call.expiresAt];
        }),
      });
    });
    return calls;
  }

  begin({ id }: CallRow): Promise<void> {
    return this.#write("UPDATE tool_calls SET state = 'begun', begun_at = $1 WHERE id = $2", (now) => [now, id]);
  }

  /** @param result in the form that the model reads */
  end({ id }: CallRow, result: TaintedText, state: "ended" | "unknown" = "ended"): Promise<void> {
    const text = "UPDATE tool_calls SET state = $1, result = $2, ended_at = $3 WHERE id = $4";
    return this.#write(text, (now) => [state, JSON.stringify(result), now, id]);
  }

  async #write(text: string, values: (now: number) => readonly Value[]): Promise<void> {
    const { store, clock, checkOwner } = this.#parts;
    await store.write(function* () {
      yield* checkOwner();
      yield* execute(text, ...values(clock.now()));
    });
  }
}

const NEW_COLUMNS = `id run_id round place tool arguments digest is_repeatable state created_at code
  expires_at`.split(/\s+/);

function plannedCall({
  round,
  place,
  call,
  tool,
  now,
}: {
  readonly round: number;
  readonly place: number;
  readonly call: ToolCall;
  readonly tool: ServerTool;
  readonly now: number;
}): CallRow {
  const args = call.function.arguments;
  return {
    id: Bun.randomUUIDv7(),
    round,
    place,
    tool: tool.id,
    arguments: args,
    digest: digestOf(tool.id, args),
    isRepeatable: tool.isRepeatable,
    state: "planned",
    result: null,
    ...(tool.isHarmless ? { code: null, expiresAt: null } : { code: newCode(), expiresAt: now + APPROVAL_MS }),
    verdict: null,
    approvedDigest: null,
  };
}

function newCode(): string {
  let code = "";
  while (code.length < CODE_LENGTH) {
    // bytes beyond the last multiple would make the first letters likelier
    const [byte = 0] = crypto.getRandomValues(new Uint8Array(1));
    if (byte < 256 - (256 % CODE_LETTERS.length)) code += CODE_LETTERS[byte % CODE_LETTERS.length];
  }
  return code;
}

type Row = Omit<CallRow, "arguments" | "result" | "isRepeatable"> & {
  readonly arguments: string;
  readonly result: string | null;
  readonly isRepeatable: number;
};

function* loadRounds(runId: string): Transaction<readonly KnownRound[]> {
  const rounds = yield* queryAll<{ round: number; message: string }>(
    "SELECT round, message FROM turn_rounds WHERE run_id = $1 ORDER BY round",
    runId,
  );
  if (rounds.length === 0) return [];
  const rows = yield* queryAll<Row>(
    `SELECT id, round, place, tool, arguments, digest, is_repeatable AS "isRepeatable", state, result, code,
       expires_at AS "expiresAt", verdict, approved_digest AS "approvedDigest"
     FROM tool_calls WHERE run_id = $1 ORDER BY round, place`,
    runId,
  );
  const calls = rows.map(callOf);
  // only this file writes these rows
  return rounds.map(({ round, message }) => ({
    message: JSON.parse(message) as Message,
    calls: calls.filter((call) => call.round === round),
  }));
}

const callOf = (row: Row): CallRow => ({
  ...row,
  arguments: JSON.parse(row.arguments) as Fields,
  result: row.result === null ? null : (JSON.parse(row.result) as TaintedText),
  isRepeatable: row.isRepeatable === 1,
});
