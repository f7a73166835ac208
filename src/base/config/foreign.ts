/**
 * Environment variables meant for Ollama: how Ollama reads values that we cannot use, and which variables have no
 * effect here.
 */
import { isIPv6 } from "node:net";
import type { KvCacheType } from "../kv-cache-type.ts";
import { PORT_DEFAULT, type Address } from "./values.ts";

const PREFIX = "OLLAMA_";

export const isForeign = (name: string): boolean => name.startsWith(PREFIX);

/** A value, and the warning for the user who set it. */
export interface Tolerated<T> {
  readonly value: T;
  readonly warning?: string;
}

/** @param about.parsed undefined if our own setting would refuse the text */
export type Tolerate<T> = (about: {
  text: string;
  parsed: T | undefined;
  initial: T;
  expected: string;
}) => Tolerated<T>;

/** The default value for a text that does not parse. */
export function orDefault<T>({ parsed, initial, expected }: Parameters<Tolerate<T>>[0]): Tolerated<T> {
  if (parsed !== undefined) return { value: parsed };
  return { value: initial, warning: `expected ${expected}; the default is taken` };
}

/**
 * `[scheme://]host[:port][/path]`. An invalid port becomes the default port; a missing host before a port means every
 * interface.
 */
export function tolerateAddress(text: string): Tolerated<Address> {
  const [, scheme, rest = ""] = /^(?:([a-z]+):\/\/)?([^/]*)/i.exec(text)!; // matches any text
  const match = isIPv6(rest) ? null : /^(\[[0-9a-f:.]+\]|[^:]*):(.*)$/i.exec(rest);
  const host = (match ? match[1]! : rest).replace(/^\[|\]$/g, "");
  const port = portOf(match?.[2], scheme);
  const hostname = host !== "" ? host : match ? "0.0.0.0" : "127.0.0.1";
  const warnings = [
    ...(port === undefined ? [`'${match?.[2]}' is not a port, so ${PORT_DEFAULT} is used`] : []),
    ...(scheme === "https" ? ["it does not switch TLS on: HEARTH_TLS_CERTIFICATE does"] : []),
    ...(hostname === "0.0.0.0" && host === "" ? ["without a host the server listens on all interfaces"] : []),
  ];
  const value = { hostname, port: port ?? PORT_DEFAULT };
  return warnings.length > 0 ? { value, warning: warnings.join("; ") } : { value };
}

/** The other 4-bit format takes a little more memory for the same precision. */
export function tolerateKvCacheType(about: Parameters<Tolerate<KvCacheType>>[0]): Tolerated<KvCacheType> {
  if (!/^q4_1$/i.test(about.text)) return orDefault(about);
  return { value: "q4_0", warning: "4 bits of keys and values are kept as q4_0, so q4_0 is taken" };
}

/** Undefined if the text is not a port. */
function portOf(text: string | undefined, scheme: string | undefined): number | undefined {
  if (text === undefined) return scheme === "http" ? 80 : scheme === "https" ? 443 : PORT_DEFAULT;
  return /^\d{1,5}$/.test(text) && Number(text) <= 65535 ? Number(text) : undefined;
}

/** Variables that are read here under our own names, or that only matter to a server with a cloud. */
const QUIET: ReadonlySet<string> = new Set(
  [
    "HOST MODELS NUM_PARALLEL MAX_LOADED_MODELS MAX_QUEUE KEEP_ALIVE CONTEXT_LENGTH LOAD_TIMEOUT ORIGINS NOPRUNE",
    "KV_CACHE_TYPE DEBUG NOHISTORY API_KEY NO_CLOUD EDITOR SKILLS AGENT_DISABLE_SHELL AGENT_DISABLE_WEBSEARCH",
  ].flatMap((names) => names.split(" ").map((name) => PREFIX + name)),
);

/** Variables that users rely on, and the reason why they have no effect here. */
const REASONS: Readonly<Record<string, string>> = {
  FLASH_ATTENTION: "attention is always computed in tiles",
  SCHED_SPREAD: "a model is divided over several GPUs only if none of them has room for it",
  GPU_OVERHEAD: "HEARTH_GPU_MEMORY says how much of the GPU models may take",
  LLM_LIBRARY: "HEARTH_BACKEND chooses the backend",
  VULKAN: "HEARTH_BACKEND chooses the backend",
  GO_TEMPLATE: "a TEMPLATE given to create is in force, others where the file's own template can do no more",
  DEBUG_LOG_REQUESTS: "prompts and answers are never logged",
};

/** One line for each variable of Ollama that is set and has no effect here. */
export function unusedVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const unused = Object.keys(env).filter((name) => isForeign(name) && env[name]?.trim() && !QUIET.has(name));
  return unused.sort().map((name) => {
    const reason = REASONS[name.slice(PREFIX.length)];
    return `${name} has no effect here${reason ? `: ${reason}` : ""}`;
  });
}
