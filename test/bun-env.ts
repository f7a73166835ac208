/** Bun's settings for programs that a test starts with a separate environment. */
import { homedir } from "node:os";
import { join } from "node:path";

/** Bun's cache of transpiled code. Without it a server takes a third longer to start, a runner twice as long. */
const TRANSPILED = "BUN_RUNTIME_TRANSPILER_CACHE_PATH";

/**
 * For processes that live for seconds: the optimising compiler and returning memory take a tenth of their processor
 * time without paying off.
 */
export const SHORT_LIVED: Readonly<Record<string, string>> = { BUN_JSC_useFTLJIT: "0", MIMALLOC_PURGE_DELAY: "-1" };

export const BUN_ENV: Readonly<Record<string, string>> = {
  [TRANSPILED]: process.env[TRANSPILED] ?? join(homedir(), ".bun/install/cache/@t@"),
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => name in SHORT_LIVED)),
};
