/**
 * Step[] → Step[]: takes the wanted rows just behind the last attention instead of before the output, since everything
 * between works row by row. A prefill then skips most of the last layer. (`inp_out_ids` of llama.cpp's graphs)
 */
import type { Buf, Step } from "./step.ts";

/** The same program with its `takeRows` as early as can be; as it is where something between looks at positions. */
export function takeRowsEarly(steps: readonly Step[]): Step[] {
  const attention = steps.findLastIndex(({ op }) => op === "attention" || op === "bidirectionalAttention");
  const at = steps.findIndex(({ op }) => op === "takeRows");
  const take = steps[at];
  if (take?.op !== "takeRows" || attention < 0 || at < attention) return [...steps];

  /** What a buffer is called once it holds wanted rows only. */
  const kept = (buf: Buf): Buf => (buf.name === take.x.name ? take.out : { name: `${buf.name}.last`, dim: buf.dim });
  const takes: Step[] = [];
  const tail: Step[] = [];
  const known = new Set<string>();
  for (const step of steps.slice(attention + 1, at)) {
    const bufs = rowBuffers(step);
    if (!bufs) return [...steps];
    for (const x of bufs.reads) if (!known.has(x.name)) takes.push({ op: "takeRows", out: kept(x), x });
    for (const buf of [...bufs.reads, bufs.writes]) known.add(buf.name);
    tail.push(renamed(step, kept));
  }
  if (!known.has(take.x.name)) takes.push(take);
  return [...steps.slice(0, attention + 1), ...takes, ...tail, ...steps.slice(at + 1)];
}

/** The buffers of a step that treats every row alike, wherever it stands; undefined for any other. */
function rowBuffers(step: Step): { reads: readonly Buf[]; writes: Buf } | undefined {
  switch (step.op) {
    case "rmsNorm":
    case "layerNorm":
    case "linear":
    case "mlp":
    case "gatedMlp":
    case "moe":
      return { reads: [step.x], writes: step.out };
    case "add":
      return { reads: step.a.name === step.b.name ? [step.a] : [step.a, step.b], writes: step.out };
    case "softCap":
    case "scale":
    case "addVector":
      return { reads: [step.x], writes: step.x };
    default:
      return undefined;
  }
}

/** A step of `rowBuffers` with every buffer renamed. */
function renamed(step: Step, name: (buf: Buf) => Buf): Step {
  switch (step.op) {
    case "rmsNorm":
    case "layerNorm":
    case "linear":
    case "mlp":
    case "gatedMlp":
    case "moe":
      return { ...step, out: name(step.out), x: name(step.x) };
    case "add":
      return { ...step, out: name(step.out), a: name(step.a), b: name(step.b) };
    case "softCap":
    case "scale":
    case "addVector":
      return { ...step, x: name(step.x) };
    default:
      return step;
  }
}
