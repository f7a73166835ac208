/**
 * Step[] → Step[]: moves the selection of wanted rows from the output to just after the last step that mixes rows,
 * because all steps between work row by row. A prefill then skips most of the last layer. (`inp_out_ids` of llama.cpp)
 */
import { isRowWise, mixesRows, readsOf, withBuffers, writtenBy } from "./describe.ts";
import type { Buf, Step } from "./step.ts";

/** The same program with its `takeRows` as early as possible; unchanged if a step between depends on positions. */
export function takeRowsEarly(steps: readonly Step[]): Step[] {
  const mixing = steps.findLastIndex(mixesRows);
  const at = steps.findIndex(({ op }) => op === "takeRows");
  const take = steps[at];
  if (take?.op !== "takeRows" || mixing < 0 || at < mixing) return [...steps];

  /** The name of a buffer once it holds only wanted rows. */
  const kept = (buf: Buf): Buf => (buf.name === take.x.name ? take.out : { name: `${buf.name}.last`, dim: buf.dim });
  const takes: Step[] = [];
  const tail: Step[] = [];
  const known = new Set<string>();
  for (const step of steps.slice(mixing + 1, at)) {
    if (!isRowWise(step)) return [...steps];
    const reads = readsOf(step);
    for (const x of reads) if (!known.has(x.name)) takes.push({ op: "takeRows", out: kept(x), x });
    for (const buf of [...reads, writtenBy(step)]) known.add(buf.name);
    tail.push(withBuffers(step, kept));
  }
  if (!known.has(take.x.name)) takes.push(take);
  return [...steps.slice(0, mixing + 1), ...takes, ...tail, ...steps.slice(at + 1)];
}
