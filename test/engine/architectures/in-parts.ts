/**
 * Compares a model's answer in parts, together with another sequence, and from snapshots with its answer in one run.
 */
import type { Backend, Program, Rows, Session } from "../../../src/engine/program/backend.ts";
import { nmse } from "../backends/compare.ts";

/** Bounds for an answer in parts, whose sums are added in another order. */
const NMSE_MAX = { precise: 1e-9, rounded: 1e-2 };
/** All logits of the tokens from `start` to `end`, in a slot. */
type Run = (slot: number, start: number, end: number) => Promise<Float32Array>;

/** Tokens before a snapshot. */
const HELD = 16;

/**
 * The problem with answers to tokens in two chunks and one by one, with another sequence, or after a snapshot, which
 * must be bit-identical; undefined: none.
 */
export async function wrongInParts(
  program: Program,
  tokens: Int32Array,
  { backend, precise }: { readonly backend: Backend; readonly precise: boolean },
): Promise<string | undefined> {
  const session = await backend.load(program, { ctxLen: 64, slots: 2, precise, threads: 1, cacheDir: undefined });
  try {
    const run: Run = async (slot, start, end) =>
      (await session.run([{ slot, start, tokens: tokens.subarray(start, end), logits: "all" }])).slice();
    const whole = await run(0, 0, tokens.length);
    const parts: number[] = [];
    const cuts = [0, 5, 13, ...Array.from({ length: tokens.length - HELD }, (_, i) => HELD + 1 + i)];
    for (const [i, start] of cuts.slice(0, -1).entries()) parts.push(...(await run(1, start, cuts[i + 1]!)));
    const error = nmse(Float32Array.from(parts), whole);
    const bound = NMSE_MAX[precise ? "precise" : "rounded"];
    if (!(error < bound)) return `in parts: NMSE ${error.toExponential(1)}`;
    const company = await errorInCompany(session, run, tokens);
    if (!(company <= (session.verifies ? 0 : bound))) return `in company: NMSE ${company.toExponential(1)}`;
    return await wrongFromSnapshot(session, run, tokens.length);
  } finally {
    session.close();
  }
}

/** Decodes a token of each of two slots, alone and together. Backends that verify drafts compute the same bits. */
async function errorInCompany(session: Session, run: Run, tokens: Int32Array): Promise<number> {
  const lengths = [HELD, 5];
  const begin = async (): Promise<void> => {
    for (const [slot, length] of lengths.entries()) await run(slot, 0, length);
  };
  await begin();
  const alone: number[] = [];
  for (const [slot, at] of lengths.entries()) alone.push(...(await run(slot, at, at + 1)));
  await begin();
  const rows = lengths.map((start, slot): Rows => {
    return { slot, start, tokens: tokens.subarray(start, start + 1), logits: "all" };
  });
  return nmse(await session.run(rows), Float32Array.from(alone));
}

/** Rolls back a slot, in itself and in another slot: continuations must be bit-identical. */
async function wrongFromSnapshot(session: Session, run: Run, end: number): Promise<string | undefined> {
  const at = HELD;
  await run(0, 0, at);
  const checkpoint = await session.checkpoints?.save(0, at);
  const block = session.blocks && { first: 0, count: at, bytes: await session.blocks.read(0, 0, at) };
  const packed = checkpoint && (await session.blocks?.checkpoints?.pack(checkpoint));
  const first = await run(0, at, end);
  if (checkpoint) session.checkpoints!.restore(0, checkpoint);
  if (!isSame(await run(0, at, end), first)) return "from a snapshot: other bits in the same slot";
  await run(1, 0, 3);
  session.copy({ from: 0, to: 1, length: at });
  if (checkpoint) session.checkpoints!.restore(1, checkpoint);
  if (!isSame(await run(1, at, end), first)) return "from a snapshot: other bits in a slot that it was copied to";
  if (!block) return undefined;
  await run(1, 0, 7);
  session.blocks!.write(1, block);
  if (packed) session.checkpoints!.restore(1, session.blocks!.checkpoints!.unpack(at, packed)!);
  return isSame(await run(1, at, end), first) ? undefined : "from a snapshot: other bits from its bytes";
}

function isSame(a: Float32Array, b: Float32Array): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
