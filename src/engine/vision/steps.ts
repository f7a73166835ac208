/** Runs long work on images in steps, so that other work can run between them. */

export type Steps<T> = Generator<void, T, void>;

/** Approximate time between two pauses. */
const PART_MS = 20;

export function runAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

export async function runWithPauses<T>(steps: Steps<T>, pause: () => Promise<void>): Promise<T> {
  let startedMs = performance.now();
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (performance.now() - startedMs < PART_MS) continue;
    await pause();
    startedMs = performance.now();
  }
}
