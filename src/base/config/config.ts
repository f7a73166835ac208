/**
 * Settings, and the only reader of environment variables, flags and the configuration file. Later wins: default, file
 * (`--config`, else `$HEARTH_CONFIG`, else `~/.hearth/hearth.json5`), environment, flags. Each `HEARTH_X` falls back to
 * the `OLLAMA_X` that people already have set. A value that does not parse is an error, never a default; only an
 * `OLLAMA_X` with which Ollama itself would start gives a warning.
 */
import { join } from "node:path";
import { AppError, messageOf } from "../errors.ts";
import { unknownNameMessage } from "../nearest.ts";
import { ownValue, isObject } from "../untrusted.ts";
import { readDocument, readPartly, type Document } from "./document.ts";
import { isForeign, unusedVariables, type Tolerated } from "./foreign.ts";
import { SETTINGS, type Setting, type Values } from "./settings.ts";
import { unknownVariables } from "./unknown.ts";
import { readMetricExport, readTracing, type MetricExportConfig, type TracingConfig } from "./telemetry.ts";
import { parsePath } from "./values.ts";

export type { MetricsDialect } from "./settings.ts";
export type { Address } from "./values.ts";

/** Sections of the file that other modules read: see `gateway/`. */
const GATEWAY_SECTIONS: readonly string[] = ["hooks", "agents", "session", "channels", "gateway", "database"];
/** `mcp`: see `runtime/mcp/`. */
const SECTIONS: readonly string[] = [...GATEWAY_SECTIONS, "mcp"];

type Joined = "responsesCount" | "responsesBytes" | "responsesAge" | "sharesStores" | "tlsCertificate" | "tlsKey";

export interface Config extends Omit<Values, Joined> {
  /** Gateway database, keys, caches. */
  readonly home: string;
  /** Undefined: plain HTTP. */
  readonly tls: TlsFiles | undefined;
  /** Folders of other servers' models, which are served besides our own and only read. */
  readonly otherStores: readonly string[];
  /** Responses that are kept for later requests. */
  readonly responses: { readonly count: number; readonly bytes: number; readonly ageMs: number };
  /** Undefined: no traces. */
  readonly tracing: TracingConfig | undefined;
  /** Undefined: metrics are not sent; `/metrics` has them. */
  readonly metricExport: MetricExportConfig | undefined;
  /** Warnings about the environment, a line each. */
  readonly warnings: readonly string[];
}

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** By setting name; undefined if absent. Also `config` (a path) and `home`. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** The user's home folder. */
  readonly home: string;
}

interface Found {
  readonly value: unknown;
  /** The origin of the value, for error messages. */
  readonly where: string;
}

/**
 * Reads a few settings: the others may be invalid or name unset variables. Both functions throw `bad_request` as
 * `readConfig` does; `setting` throws only for the setting it reads.
 */
export function readSettings(sources: ConfigSources): {
  readonly home: string;
  setting<Name extends keyof Values>(name: Name): Values[Name];
} {
  const { home, value } = valuesOf(sources, readConfigPart(sources), []);
  const setting = <Name extends keyof Values>(name: Name): Values[Name] =>
    value(name, SETTINGS[name] as unknown as Setting<Values[Name]>);
  return { home, setting };
}

/**
 * Throws `bad_request` naming the setting, where it was set, what was expected and what was found.
 * @param document the configuration file, if already read
 */
export function readConfig(sources: ConfigSources, document = readConfigFile(sources)): Config {
  const known = [...Object.values(SETTINGS).flatMap(({ env }) => env), ...(document?.variables ?? [])];
  const warnings = [...unusedVariables(sources.env), ...unknownVariables(sources.env, known)];
  const { home, value } = valuesOf(sources, document, warnings);
  const all = Object.fromEntries(
    Object.entries(SETTINGS).map(([name, row]) => [name, value(name, row as unknown as Setting<unknown>)]),
  ) as Values; // a value for each row
  const { responsesCount: count, responsesBytes: bytes, responsesAge: ageMs, sharesStores, ...rest } = all;
  const { tlsCertificate, tlsKey, ...values } = rest;
  return {
    ...values,
    home,
    otherStores: sharesStores ? otherStores(sources, values.models) : [],
    responses: { count, bytes, ageMs },
    tls: tlsFiles(tlsCertificate, tlsKey),
    tracing: readTracing(sources.env),
    metricExport: readMetricExport(sources.env),
    warnings,
  };
}

type ValueOf = <T>(name: string, row: Setting<T>) => T;

/** Throws `bad_request` if only one of the two is given. */
function tlsFiles(certificate: string | undefined, key: string | undefined): TlsFiles | undefined {
  if (certificate !== undefined && key !== undefined) return { certificate, key };
  if (certificate === undefined && key === undefined) return undefined;
  const [given, missing] = key === undefined ? ["certificate", "key"] : ["key", "certificate"];
  throw new AppError(
    "bad_request",
    `tls.${given}: expected 'tls.${missing}' together with it (HEARTH_TLS_${missing!.toUpperCase()})`,
  );
}

/** @param warnings receives one for each tolerated value */
function valuesOf(
  sources: ConfigSources,
  document: Document | undefined,
  warnings: string[],
): { home: string; value: ValueOf } {
  const file = settingsOf(document);
  const find = (name: string, env: readonly string[]): Found | undefined =>
    findFlag(sources.flags, name) ?? findEnv(sources.env, env) ?? file(name);
  const found = find("home", ["HEARTH_HOME"]);
  const home = found
    ? checked(parsePath(found.value), { name: "home", found, expected: "the path of a folder" })
    : join(sources.home, ".hearth");
  const value: ValueOf = (name, row) => {
    const found = find(name, row.env);
    if (!found) return row.initial(home);
    const tolerated = toleratedValue(row, found, row.initial(home));
    if (tolerated?.warning) warnings.push(`${found.where}='${String(found.value)}': ${tolerated.warning}`);
    return tolerated ? tolerated.value : checked(row.parse(found.value), { name, found, ...row });
  };
  return { home, value };
}

/**
 * Ollama's model folders, of a user and of the system service; `OLLAMA_MODELS` replaces both.
 * @param own our own store, which may be one of them
 */
function otherStores({ env, home }: ConfigSources, own: string): string[] {
  const theirs = parsePath(findEnv(env, ["OLLAMA_MODELS"])?.value);
  if (theirs !== undefined) return theirs === own ? [] : [theirs];
  return [join(home, ".ollama", "models"), "/usr/share/ollama/.ollama/models"];
}

/** Undefined if the value is not from a variable of Ollama, or follows the same rules as ours. */
function toleratedValue<T>(row: Setting<T>, { value, where }: Found, initial: T): Tolerated<T> | undefined {
  if (!isForeign(where)) return undefined;
  return row.tolerates?.({ text: String(value), parsed: row.parse(value), initial, expected: row.expected });
}

/**
 * The configuration file: the requested one, else the one in the user's home, which may be missing. Throws
 * `bad_request`.
 */
export const readConfigFile = (sources: ConfigSources): Document | undefined => readFile(sources, readDocument);

/** As `readConfigFile`, but the caller calls `checkSet` before it uses a value. */
export const readConfigPart = (sources: ConfigSources): Document | undefined => readFile(sources, readPartly);

function readFile(sources: ConfigSources, read: typeof readDocument): Document | undefined {
  const { path, askedBy } = configPath(sources);
  try {
    return read(path, sources.env);
  } catch (error) {
    if (error instanceof AppError) throw error;
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT"; // node:fs throws errors with a code
    if (missing && askedBy === undefined) return undefined;
    throw new AppError("bad_request", `${askedBy ?? "configuration"}: cannot read '${path}': ${messageOf(error)}`);
  }
}

/** Returns whether the file has a section of the gateway. Throws as `readConfigFile`. */
export function hasSections(sources: ConfigSources): boolean {
  const root = readConfigFile(sources)?.root ?? {};
  return GATEWAY_SECTIONS.some((name) => Object.hasOwn(root, name));
}

/** The path of the configuration file, which may be missing. `askedBy`: the flag or variable that names it. */
export function configPath({ env, flags, home }: ConfigSources): { path: string; askedBy: string | undefined } {
  const asked = findFlag(flags, "config") ?? findEnv(env, ["HEARTH_CONFIG"]);
  return { path: asked ? String(asked.value) : join(home, ".hearth", "hearth.json5"), askedBy: asked?.where };
}

/** Looks up settings in the file. Sections are left to the modules that know them. */
function settingsOf(file: Document | undefined): (name: string) => Found | undefined {
  if (!file) return () => undefined;
  const known = ["home", ...Object.keys(SETTINGS).map(keyOf)];
  const found = new Map<string, Found & { readonly path: readonly string[] }>();
  for (const path of Object.keys(file.root).flatMap((name) => pathsBelow(file.root, name))) {
    const key = path.join(".");
    if (SECTIONS.includes(key)) continue;
    const place = key === "models" ? "models.folder" : key; // a text is the folder
    if (!known.includes(place)) {
      const message = unknownNameMessage(`unknown setting '${key}'`, key, [...known, ...SECTIONS]);
      throw new AppError("bad_request", `${file.where(path)}: ${message}`);
    }
    found.set(place, { value: ownValue(file.root, path), where: file.where(path), path });
  }
  return (name) => {
    const one = found.get(keyOf(name));
    if (one) file.checkSet(one.path);
    return one;
  };
}

/** The key of a setting in the file. */
const keyOf = (name: string): string =>
  (SETTINGS as Readonly<Record<string, { readonly key?: string }>>)[name]?.key ?? name;

/** Settings whose keys are below that of their group. */
const GROUPS: readonly string[] = ["models", "responses", "tls"];

function pathsBelow(root: Document["root"], name: string): string[][] {
  const value = root[name];
  if (!GROUPS.includes(name) || !isObject(value)) return [[name]];
  return Object.keys(value).map((key) => [name, key]);
}

function findFlag(flags: ConfigSources["flags"], name: string): Found | undefined {
  const value = flags[name];
  const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return value === undefined ? undefined : { value, where: flag };
}

/** Blanks and quotes around a value are not part of it; an empty variable is an unset one. */
export function findEnv(
  env: ConfigSources["env"],
  names: readonly string[],
): { readonly value: string; readonly where: string } | undefined {
  for (const name of names) {
    const value = env[name]?.trim().replace(/^["']+|["']+$/g, "");
    if (value) return { value, where: name };
  }
  return undefined;
}

interface At extends Pick<Setting<unknown>, "expected" | "instead"> {
  readonly name: string;
  readonly found: Found;
}

/** An address without its password, for messages. */
const withoutPassword = (text: string): string => text.replace(/\/\/[^/]*@/, "//(not shown)@");

function checked<T>(value: T | undefined, at: At): T {
  if (value !== undefined) return value;
  const isSecret = ["apiKeys", "modelsKey", "modelsSourceLogin"].includes(at.name);
  const shown = isSecret ? "(not shown)" : `'${withoutPassword(String(at.found.value))}'`;
  const setting = `${at.found.where}: setting '${keyOf(at.name)}'`;
  const instead = at.instead?.[String(at.found.value)];
  const hint = instead === undefined ? "" : `; ${instead}`;
  throw new AppError("bad_request", `${setting}: expected ${at.expected}, got ${shown}${hint}`);
}
