/**
 * A mapping with its templates, conditions and list parsed once. A broken mapping still owns its requests, and reports
 * why: they must not fall to a later mapping that trusts more.
 */
import { createHash } from "node:crypto";
import { isServerTool } from "../../agent/calls/server-tools.ts";
import { checkTools } from "../../agent/tools/index.ts";
import { AppError } from "../../../base/index.ts";
import type { MappingConfig, PresetName } from "../config.ts";
import type { Preset } from "./presets/preset.ts";
import { presets } from "./presets/index.ts";
import { hasUniqueBodies } from "../ingress/signatures/index.ts";
import { makeQuestion, type Question } from "./conditions.ts";
import { isMissing, shortHash, textOf } from "./filters.ts";
import { parsePath, ROOTS, valueAt } from "./path.ts";
import { type MappingRequest, trimSlashes, type View, viewOf } from "./request.ts";
import { makeTemplate, type Rendered } from "./template.ts";

type Template = (view: View) => Rendered;

/** The parsed parts that every request of a mapping needs. */
export interface Plan {
  readonly message: Template | undefined;
  readonly text: Template | undefined;
  readonly name: Template | undefined;
  readonly sessionKey: Template | undefined;
  readonly to: Template | undefined;
  readonly model: Template | undefined;
  readonly thinking: Template | undefined;
  readonly itemId: Template | undefined;
  /** Undefined: the mapping has no `forEach`. */
  readonly items: ((view: View) => readonly unknown[]) | undefined;
}

export interface Mapping {
  readonly id: string;
  readonly config: MappingConfig;
  readonly preset: PresetName | undefined;
  /** True if it takes requests of this path; without a path in the configuration, of any. */
  takesPath(path: string): boolean;
  /** Path and source match; conditions are not evaluated. */
  isFor(request: MappingRequest): boolean;
  /** True if its preset skips this event, which is answered with 204. */
  leavesOut(view: View): boolean;
  /** True if it takes this request. Throws `too_large` if a condition cannot search all of a text. */
  takes(request: MappingRequest): boolean;
  readonly plan: { readonly ok: true; readonly plan: Plan } | { readonly ok: false; readonly problem: string };
}

/** Paths of fixed endpoints. */
export const RESERVED: readonly string[] = ["wake", "agent"];

export interface MappingOrigin {
  readonly id: string;
  readonly preset?: PresetName;
  /** True if it takes events that its preset would skip. */
  readonly allEvents?: boolean | undefined;
}

export function makeMapping(config: MappingConfig, { id, preset, allEvents = false }: MappingOrigin): Mapping {
  const path = config.match.path === undefined ? undefined : trimSlashes(config.match.path);
  const takesPath = (asked: string): boolean => {
    const sub = trimSlashes(asked);
    return sub !== "" && !RESERVED.includes(sub) && (path === undefined || path === sub);
  };
  const parsed = attempt(() => ({
    plan: makePlan(config),
    asks: config.match.when && makeQuestion(config.match.when),
  }));
  const isFor = (request: MappingRequest): boolean =>
    takesPath(request.path) && hasSource(request.payload, config.match.source);
  // a broken condition counts as true, so that the mapping keeps its requests
  const asks: Question | undefined = parsed.ok ? parsed.value.asks : undefined;
  const known: Preset | undefined = preset && presets[preset];
  return {
    id,
    config,
    preset,
    takesPath,
    isFor,
    leavesOut: (view) => !allEvents && (known?.leavesOut?.(view) ?? false),
    takes: (request) => isFor(request) && (asks === undefined || named(id, () => asks(viewOf(request, config.auth)))),
    plan: parsed.ok ? { ok: true, plan: parsed.value.plan } : { ok: false, problem: parsed.problem },
  };
}

/**
 * The sender's own id of a delivery, if its signature does not contain one. For authenticated requests only: others
 * could mark ids as used.
 */
export function deliveryIdOf({ preset, config }: Mapping, request: MappingRequest): string | undefined {
  if (!preset) return undefined;
  const view = viewOf(request, config.auth);
  const { deliveryIdAt }: Preset = presets[preset];
  for (const at of deliveryIdAt) {
    const value = valueAt(view, parsePath(at));
    const text = isMissing(value) || typeof value === "object" ? "" : textOf(value);
    if (text !== "" && text.length <= 256) return text;
  }
  return undefined;
}

/** Prefixes errors with the mapping's id. */
function named<T>(id: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.code, `mapping '${id}': ${error.message}`, { cause: error });
  }
}

/**
 * An id that is the same when a delivery is repeated; for authenticated requests.
 * @param signedId from its signature scheme
 */
export function repeatId(
  mapping: Mapping,
  { request, rawBody, signedId }: { request: MappingRequest; rawBody: Uint8Array; signedId: string | undefined },
): string | undefined {
  const { dedupeBody, auth } = mapping.config;
  if (dedupeBody ?? (auth !== undefined && hasUniqueBodies(auth.scheme))) {
    return `sha256:${createHash("sha256").update(rawBody).digest("hex")}`;
  }
  const id = signedId ?? deliveryIdOf(mapping, request);
  return id?.includes("\0") ? shortHash(id) : id; // PostgreSQL cannot store U+0000
}

function attempt<T>(work: () => T): { ok: true; value: T } | { ok: false; problem: string } {
  try {
    return { ok: true, value: work() };
  } catch (error) {
    if (error instanceof AppError) return { ok: false, problem: error.message };
    throw error;
  }
}

function hasSource(payload: unknown, source: string | undefined): boolean {
  if (source === undefined) return true;
  if (typeof payload !== "object" || payload === null || !Object.hasOwn(payload, "source")) return false;
  return (payload as { source: unknown }).source === source;
}

function makePlan(config: MappingConfig): Plan {
  // refuse unknown tools now: later, a turn would fail after its request was accepted
  checkTools(config.tools.filter((name) => !isServerTool(name)));
  const roots: readonly (keyof View)[] = [
    ...ROOTS,
    ...(config.forEach === undefined ? [] : (["item", "index"] as const)),
    ...(config.transform ? (["values"] as const) : []),
  ];
  const template = (key: keyof MappingConfig & string): Template | undefined => {
    const source = config[key];
    if (typeof source !== "string") return undefined;
    try {
      return makeTemplate(source, { missing: config.missing, roots });
    } catch (error) {
      if (error instanceof AppError) throw new AppError(error.code, `${key}: ${error.message}`, { cause: error });
      throw error;
    }
  };
  return {
    message: template("messageTemplate"),
    text: template("textTemplate"),
    name: template("name"),
    sessionKey: template("sessionKey"),
    to: template("to"),
    model: template("model"),
    thinking: template("thinking"),
    itemId: template("itemId"),
    items: config.forEach === undefined ? undefined : makeItems(config.forEach),
  };
}

function makeItems(source: string): (view: View) => readonly unknown[] {
  const path = parsePath(source);
  return (view) => {
    const list = valueAt(view, path);
    if (Array.isArray(list)) return list;
    throw new AppError("bad_request", `'${source}': expected a list, got ${list === null ? "null" : typeof list}`);
  };
}
