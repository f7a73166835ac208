/** For programs that a test starts with an environment of its own: what Bun is to know. */
import { homedir } from "node:os";
import { join } from "node:path";

/** Where Bun keeps what it transpiled. Without it a server takes a third longer to start, a runner twice as long. */
const TRANSPILED = "BUN_RUNTIME_TRANSPILER_CACHE_PATH";

/**
 * For processes that last seconds: the compiler that pays after many of them, and giving memory back, take a tenth of
 * their processor time.
 */
export const SHORT_LIVED: Readonly<Record<string, string>> = { BUN_JSC_useFTLJIT: "0", MIMALLOC_PURGE_DELAY: "-1" };

export const BUN_ENV: Readonly<Record<string, string>> = {
  [TRANSPILED]: process.env[TRANSPILED] ?? join(homedir(), ".bun/install/cache/@t@"),
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => name in SHORT_LIVED)),
};
