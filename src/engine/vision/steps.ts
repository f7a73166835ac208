/** Long work on pictures in steps, between which others may have their turn. */

export type Steps<T> = Generator<void, T, void>;

/** How long others wait for some of it, about. */
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
