/**
 * Approvals of calls of tool servers. A call that needs one waits in the journal, and its run in the queue, across
 * restarts and nodes. An approval is for the digest of the call's tool and arguments.
 */
import { Type } from "@sinclair/typebox";
import { AppError, type Fields } from "../../../base/index.ts";
import { type Output, strictObject } from "../../../base/schema.ts";
import { execute, queryAll, queryOne, type Transaction } from "../../database/store.ts";
import type { Target } from "../../channels/channel.ts";

/** A call that waits for an approval. */
export const approvalSchema = strictObject({
  code: Type.String({ description: "Names it in commands and chats" }),
  runId: Type.String(),
  tool: Type.String({ description: "Server and tool, with a slash between them" }),
  arguments: Type.Object({}, { additionalProperties: true }),
  digest: Type.String({ description: "SHA-256 of tool and arguments: what is approved" }),
  createdAt: Type.Integer({ description: "Epoch milliseconds" }),
  expiresAt: Type.Integer(),
});
export type Approval = Omit<Readonly<Output<typeof approvalSchema>>, "arguments"> & { readonly arguments: Fields };

export interface Verdict {
  readonly verdict: "yes" | "no";
  /** The operator: `admin`, or the chat. */
  readonly by: string;
  readonly now: number;
  /** Digest of the call that was shown; absent: the stored one. */
  readonly digest?: string | undefined;
}

const LIST_MAX = 500;

type Row = Omit<Approval, "arguments"> & { readonly arguments: string };

const COLUMNS = `code, run_id AS "runId", tool, arguments, digest, created_at AS "createdAt", expires_at AS "expiresAt"`;
const UNDECIDED = "code IS NOT NULL AND verdict IS NULL AND state = 'planned'";

const approvalOf = (row: Row): Approval => ({ ...row, arguments: JSON.parse(row.arguments) as Fields }); // ours

/** The calls that wait, the oldest first. */
export function* listApprovals(now: number): Transaction<readonly Approval[]> {
  const rows = yield* queryAll<Row>(
    `SELECT ${COLUMNS} FROM tool_calls WHERE ${UNDECIDED} AND expires_at > $1
       AND run_id IN (SELECT id FROM runs WHERE finished_at IS NULL) ORDER BY created_at, code LIMIT ${LIST_MAX}`,
    now,
  );
  return rows.map(approvalOf);
}

/** The waiting calls of a run. `wasAsked`: a message about the call was queued, or there is no chat for it. */
export function* approvalsOf(runId: string): Transaction<readonly (Approval & { readonly wasAsked: boolean })[]> {
  const rows = yield* queryAll<Row & { readonly asked: number | null }>(
    `SELECT ${COLUMNS}, asked_at AS asked FROM tool_calls WHERE run_id = $1 AND ${UNDECIDED} ORDER BY round, place`,
    runId,
  );
  return rows.map(({ asked, ...row }) => ({ ...approvalOf(row), wasAsked: asked !== null }));
}

/** @param chat undefined: the turn answers to no chat */
export const setAsked = (code: string, chat: Target | undefined, now: number): Transaction<number> =>
  execute(
    "UPDATE tool_calls SET asked_at = $1, asked_in = $2 WHERE code = $3",
    now,
    chat ? JSON.stringify(chat) : null,
    code,
  );

/** The chat that was asked about a code; undefined: no chat was asked, or there is no such code. */
export function* chatOf(code: string): Transaction<Target | undefined> {
  const row = yield* queryOne<{ chat: string | null }>("SELECT asked_in AS chat FROM tool_calls WHERE code = $1", code);
  return row?.chat == null ? undefined : (JSON.parse(row.chat) as Target); // setAsked wrote it
}

/**
 * Records a decision, so that the run continues. An equal decision again changes nothing. Throws `not_found`, or
 * `conflict` if it is decided otherwise, too late, or for another digest.
 */
export function* decide(code: string, { verdict, by, now, digest }: Verdict): Transaction<Approval> {
  const row = yield* queryOne<Row & { verdict: string | null; state: string; finishedAt: number | null }>(
    `SELECT ${COLUMNS}, verdict, state,
       (SELECT finished_at FROM runs WHERE id = run_id) AS "finishedAt" FROM tool_calls WHERE code = $1`,
    code,
  );
  if (!row) throw new AppError("not_found", `there is no approval '${code.slice(0, 32)}'`);
  const { verdict: earlier, state, finishedAt, ...approval } = row;
  if (earlier === verdict) return approvalOf(approval);
  const problem =
    earlier !== null
      ? `was answered with '${earlier}' already`
      : finishedAt !== null || state !== "planned" || approval.expiresAt <= now
        ? "is over: the call is not waiting any more"
        : digest !== undefined && digest !== approval.digest
          ? "is for another call: the digests of tool and arguments differ"
          : undefined;
  if (problem !== undefined) throw new AppError("conflict", `approval ${code} ${problem}`);
  yield* execute(
    "UPDATE tool_calls SET verdict = $1, approved_digest = $2, decided_at = $3, decided_by = $4 WHERE code = $5",
    verdict,
    verdict === "yes" ? approval.digest : null,
    now,
    by,
    code,
  );
  yield* execute(
    "UPDATE runs SET next_at = $1 WHERE id = $2 AND finished_at IS NULL AND step = 'turn' AND state = 'queued'",
    now,
    approval.runId,
  );
  return approvalOf(approval);
}
