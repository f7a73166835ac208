/** Finds the parts of a program that a backend does not support, before anything is loaded. */
import { AppError } from "../../base/index.ts";
import type { Program } from "../program/backend.ts";
import { variantsOf, type Variant } from "../program/describe.ts";
import type { Step } from "../program/step.ts";

/** The support of a backend: its entry for each op, `"unsupported"` if missing, and its variants. */
export interface Answers {
  readonly ops: Readonly<Record<Step["op"], unknown>>;
  readonly variants: ReadonlySet<Variant>;
}

/** The ops, and the variants of ops, that a program has and a backend lacks, without duplicates. */
export function missingOps(
  { steps, memory }: Pick<Program, "steps" | "memory">,
  { ops, variants }: Answers,
): readonly string[] {
  const missing = [...steps, ...(memory?.steps ?? [])].flatMap((step) =>
    ops[step.op] === "unsupported" ? [step.op] : variantsOf(step).filter((variant) => !variants.has(variant)),
  );
  return [...new Set(missing)];
}

/** Throws `unsupported` with the names of everything that a backend lacks. */
export function checkOps(program: Program, answers: Answers & { readonly name: string }): void {
  const missing = missingOps(program, answers);
  if (missing.length === 0) return;
  const what = `the ${answers.name} backend has no kernels for ${missing.join(", ")}; the cpu backend can run it`;
  throw new AppError("unsupported", `${program.weights.path}: '${program.shape.arch}': ${what}`);
}
