/**
 * Model names: `[scheme://][host/][namespace/]model[:tag]`, parsed from the right; missing parts have defaults. The
 * parts become path segments of the manifest, so their grammar also keeps names inside the store.
 */
import { AppError } from "../../base/index.ts";

declare const brand: unique symbol;

/** A valid, complete name. */
export interface ModelName {
  readonly host: string;
  readonly namespace: string;
  readonly model: string;
  readonly tag: string;
  readonly [brand]: true;
}

const DEFAULTS = { host: "registry.ollama.ai", namespace: "library", tag: "latest" } as const;

/** First character, then the rest; no part can be `.` or `..`, or contain a separator. Lengths are the registry's. */
const GRAMMAR = {
  host: /^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}$/,
  namespace: /^[A-Za-z0-9_][A-Za-z0-9_-]{0,79}$/,
  model: /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$/,
  tag: /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$/,
} as const;

/** Throws `bad_request` (`invalid model name`) if a part is malformed or empty. */
export function parseName(text: string): ModelName {
  const { rest: path, last: tag } = cut(text.replace(/^[a-z]+:\/\//i, ""), ":");
  const { rest: owner, last: model } = splitAt(path, path.lastIndexOf("/"));
  const { rest: host, last: namespace } = splitAt(owner, owner?.lastIndexOf("/") ?? -1);
  return makeName({
    host: host ?? DEFAULTS.host,
    namespace: namespace ?? DEFAULTS.namespace,
    model: model ?? "",
    tag: tag ?? DEFAULTS.tag,
  });
}

/** The only constructor of names: checks all four parts. */
export function makeName(parts: { host: string; namespace: string; model: string; tag: string }): ModelName {
  const { host, namespace, model, tag } = parts;
  const valid =
    GRAMMAR.host.test(host) && GRAMMAR.namespace.test(namespace) && GRAMMAR.model.test(model) && GRAMMAR.tag.test(tag);
  if (!valid) throw new AppError("bad_request", "invalid model name");
  return { host, namespace, model, tag } as ModelName; // the only cast: all parts were checked
}

/**
 * The name in a request: surrounding blanks are dropped, and so is the suffix `:local`, which asks for a model of this
 * machine. Throws `bad_request`.
 */
export function parseReference(text: string): ModelName {
  const trimmed = text.trim();
  const local = /^(.*):(local|cloud)$/is.exec(trimmed);
  if (local?.[1] && /:(local|cloud)$/i.test(local[1])) {
    throw new AppError("bad_request", `use either :local or :cloud, not both: ${JSON.stringify(trimmed)}`);
  }
  return parseName(local?.[2]?.toLowerCase() === "local" ? (local[1] ?? "") : trimmed);
}

/** The shortest form that names the model, always with its tag: `llama3:latest`, `user/m:tag`, `host/ns/m:tag`. */
export function displayName({ host, namespace, model, tag }: ModelName): string {
  if (host !== DEFAULTS.host) return `${host}/${namespace}/${model}:${tag}`;
  return namespace === DEFAULTS.namespace ? `${model}:${tag}` : `${namespace}/${model}:${tag}`;
}

/** Returns whether a name has no host or the default one. */
export const isHostless = ({ host }: ModelName): boolean => host === DEFAULTS.host;

/** All four parts: `registry.ollama.ai/library/llama3:latest`. */
export function fullName({ host, namespace, model, tag }: ModelName): string {
  return `${host}/${namespace}/${model}:${tag}`;
}

/** The tag follows the last colon, unless a slash comes after it (then the colon belongs to a port). */
function cut(text: string, separator: string): { rest: string; last: string | undefined } {
  const at = text.lastIndexOf(separator);
  if (at < 0 || at < text.lastIndexOf("/")) return { rest: text, last: undefined };
  return { rest: text.slice(0, at), last: text.slice(at + 1) };
}

function splitAt(text: string | undefined, at: number): { rest: string | undefined; last: string | undefined } {
  if (text === undefined || at < 0) return { rest: undefined, last: text };
  return { rest: text.slice(0, at), last: text.slice(at + 1) };
}
