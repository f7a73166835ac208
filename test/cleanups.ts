/** Cleanups after a test, for any file: a fixture's own `afterEach` would belong to the first file that imports it. */
const cleanups: (() => unknown)[] = [];

/** Runs after the test, the last registered first. */
export const afterTest = (cleanup: () => unknown): number => cleanups.push(cleanup);

export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
}

const endings: (() => unknown)[] = [];

/** Runs after the last test of the process. */
export const afterLastTest = (ending: () => unknown): number => endings.push(ending);

export async function end(): Promise<void> {
  for (const ending of endings.splice(0)) await ending();
}
