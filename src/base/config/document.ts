/**
 * The configuration file as one value: JSON5, with included files merged in and `${NAME}` replaced by environment
 * variables. Every value keeps its file and line for error messages.
 */
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, sep } from "node:path";
import JSON5 from "json5";
import { AppError, messageOf } from "../errors.ts";
import { positionsOf, pathKey, type Path } from "./positions.ts";

const FILE_BYTES_MAX = 1024 * 1024; // a configuration has a few kilobytes
const FILES_MAX = 64;
const INCLUDE_DEPTH_MAX = 10;
const NESTING_MAX = 64;
const PATH_LENGTH_MAX = 4096;

type Node =
  | { readonly kind: "object"; readonly entries: ReadonlyMap<string, Node>; readonly at: Place }
  | { readonly kind: "array"; readonly items: readonly Node[]; readonly at: Place }
  | { readonly kind: "scalar"; readonly value: unknown; readonly at: Place; readonly hasVariable?: boolean };

interface Place {
  readonly file: string;
  readonly line: number;
}

export interface Document {
  readonly root: Readonly<Record<string, unknown>>;
  /** All files that were read; the main file comes first. */
  readonly files: readonly string[];
  /** Keys that occur twice in an object, each with its `file:line`; the last one counts. */
  readonly repeated: readonly Repeated[];
  /** `file:line` of a value, or of the nearest enclosing one. */
  where(path: Path): string;
  /** Names of the environment variables that texts refer to. */
  readonly variables: ReadonlySet<string>;
  /** Returns whether a text contains an environment variable. */
  hasVariable(path: Path): boolean;
  /** Throws `bad_request` if a text at or below `path` refers to an unset variable. */
  checkSet(path: Path): void;
}

interface Repeated {
  readonly key: string;
  readonly where: string;
}

interface Reading {
  /** Includes must stay in this folder; symbolic links are resolved. */
  readonly folder: string;
  readonly files: string[];
  readonly repeated: Repeated[];
}

type Env = Readonly<Record<string, string | undefined>>;

/** Throws `bad_request` naming file and line. An error of the file system keeps its code as `cause`. */
export function readDocument(path: string, env: Env): Document {
  const document = readPartly(path, env);
  document.checkSet([]);
  return document;
}

/**
 * As `readDocument`, for callers that need part of it: texts with unset variables stay unchanged, and callers run
 * `checkSet` before they use a value.
 */
export function readPartly(path: string, env: Env): Document {
  const text = readText(path);
  const reading: Reading = { folder: realpathSync(dirname(path)), files: [], repeated: [] };
  const [variables, unset] = [new Set<string>(), [] as Unset[]];
  const lookUp = (name: string, at: Omit<Unset, "name">): string | undefined => {
    variables.add(name);
    if (!env[name]) unset.push({ ...at, name });
    return env[name] || undefined;
  };
  const root = substitute(readNode({ path, text, reading, chain: [] }), lookUp, []);
  if (root.kind !== "object") {
    throw new AppError("bad_request", `${path}: expected an object of settings, got ${JSON.stringify(valueOf(root))}`);
  }
  return {
    root: valueOf(root) as Record<string, unknown>, // an object, checked above
    files: reading.files,
    variables,
    repeated: reading.repeated,
    where: (keys) => describePlace(findNode(root, keys).at),
    hasVariable: (keys) => {
      const node = findNode(root, keys);
      return node.kind === "scalar" && node.hasVariable === true;
    },
    checkSet: (keys) => {
      const found = unset.find((each) => keys.every((key, i) => each.path[i] === key));
      if (!found) return;
      const where = `${describePlace(found.place)}: ${describePath(found.path)}`;
      throw new AppError("bad_request", `${where}: the environment variable ${found.name} is not set`);
    },
  };
}

/** An unset or empty variable, and the text that refers to it. */
interface Unset {
  readonly name: string;
  readonly path: Path;
  readonly place: Place;
}

/** Reads a regular file: a pipe would block the process, and a device has no end. */
function readText(path: string): string {
  const found = statSync(path);
  if (!found.isFile()) {
    const got = found.isDirectory() ? "a folder" : "something else";
    throw new AppError("bad_request", `${path}: expected a file, got ${got}`);
  }
  if (found.size > FILE_BYTES_MAX) {
    throw new AppError("bad_request", `${path}: expected at most ${FILE_BYTES_MAX} bytes, got ${found.size}`);
  }
  return readFileSync(path, "utf8");
}

interface FileToRead {
  readonly path: string;
  readonly text: string;
  readonly reading: Reading;
  /** The including files, as real paths. */
  readonly chain: readonly string[];
}

function readNode({ path, text, reading, chain }: FileToRead): Node {
  reading.files.push(path);
  if (reading.files.length > FILES_MAX) {
    throw new AppError("bad_request", `${path}: expected at most ${FILES_MAX} files in a configuration`);
  }
  let value: unknown;
  try {
    value = JSON5.parse(text);
  } catch (error) {
    throw new AppError("bad_request", `${path}: not JSON5: ${messageOf(error).replace(/^JSON5: /, "")}`);
  }
  const { lines, repeated } = positionsOf(text);
  reading.repeated.push(...repeated.map(({ key, line }) => ({ key, where: describePlace({ file: path, line }) })));
  const node = annotate(value, { file: path, lines, path: [] });
  return include(node, { reading, folder: dirname(path), chain: [...chain, realpathSync(path)] });
}

/** @param at the path for line lookups; a value without a line gets the line of the enclosing value */
function annotate(
  value: unknown,
  at: { file: string; lines: ReadonlyMap<string, number>; path: Path; line?: number },
): Node {
  const line = at.lines.get(pathKey(at.path)) ?? at.line ?? 1;
  const place = { file: at.file, line };
  if (at.path.length > NESTING_MAX) {
    throw new AppError("bad_request", `${describePlace(place)}: expected at most ${NESTING_MAX} levels`);
  }
  const child = (key: string | number, inner: unknown): Node =>
    annotate(inner, { ...at, line, path: [...at.path, key] });
  if (Array.isArray(value)) return { kind: "array", items: value.map((item, i) => child(i, item)), at: place };
  if (typeof value !== "object" || value === null) return { kind: "scalar", value, at: place };
  if (Object.hasOwn(value, "__proto__")) {
    const path = [...at.path, "__proto__"];
    const own = { file: at.file, line: at.lines.get(pathKey(path)) ?? line };
    throw new AppError("bad_request", `${describePlace(own)}: ${describePath(path)}: no such key`);
  }
  const entries = new Map(Object.entries(value).map(([key, inner]) => [key, child(key, inner)]));
  return { kind: "object", entries, at: place };
}

interface Including {
  readonly reading: Reading;
  readonly folder: string;
  readonly chain: readonly string[];
}

/** Replaces `$include` at any level; keys beside it win. */
function include(node: Node, about: Including): Node {
  if (node.kind === "scalar") return node;
  if (node.kind === "array") return { ...node, items: node.items.map((item) => include(item, about)) };
  const entries = new Map<string, Node>();
  for (const [key, inner] of node.entries) if (key !== "$include") entries.set(key, include(inner, about));
  const own: Node = { ...node, entries };
  const named = node.entries.get("$include");
  if (!named) return own;
  const included = (named.kind === "array" ? named.items : [named])
    .map((item) => includedFile(item, about))
    .reduce((all, next) => merge(all, next));
  if (entries.size === 0) return included;
  if (included.kind === "object") return merge(included, own);
  throw new AppError(
    "bad_request",
    `${describePlace(named.at)}: $include: expected an object, because there are other keys`,
  );
}

function includedFile(named: Node, { reading, folder, chain }: Including): Node {
  const bad = (what: string): AppError => new AppError("bad_request", `${describePlace(named.at)}: $include: ${what}`);
  const given = named.kind === "scalar" ? named.value : undefined;
  if (typeof given !== "string" || given === "" || given.length > PATH_LENGTH_MAX || given.includes("\0")) {
    throw bad("expected the path of a file");
  }
  if (chain.length > INCLUDE_DEPTH_MAX) throw bad(`expected at most ${INCLUDE_DEPTH_MAX} files inside each other`);
  const path = isAbsolute(given) ? given : join(folder, given);
  let text: string;
  let real: string;
  try {
    real = realpathSync(path);
    if (!real.startsWith(reading.folder + sep)) throw bad(`'${given}' is outside the folder of the configuration`);
    if (chain.includes(real)) throw bad(`'${given}' includes itself`);
    text = readText(path);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw bad(`cannot read '${given}': ${(error as NodeJS.ErrnoException).code}`);
  }
  return readNode({ path, text, reading, chain });
}

/** Merges objects key by key and concatenates arrays; otherwise the later value wins. */
function merge(under: Node, over: Node): Node {
  if (under.kind === "array" && over.kind === "array") return { ...over, items: [...under.items, ...over.items] };
  if (under.kind !== "object" || over.kind !== "object") return over;
  const entries = new Map(under.entries);
  for (const [key, node] of over.entries) {
    const before = entries.get(key);
    entries.set(key, before ? merge(before, node) : node);
  }
  return { ...over, entries };
}

type LookUp = (name: string, at: { path: Path; place: Place }) => string | undefined;

/** Replaces `${NAME}` in texts; `$${` stands for `${`. Unknown names stay unchanged. */
function substitute(node: Node, lookUp: LookUp, path: Path): Node {
  if (node.kind === "array") {
    return { ...node, items: node.items.map((item, i) => substitute(item, lookUp, [...path, i])) };
  }
  if (node.kind === "object") {
    const entries = [...node.entries].map(([key, inner]) => [key, substitute(inner, lookUp, [...path, key])] as const);
    return { ...node, entries: new Map(entries) };
  }
  if (typeof node.value !== "string") return node;
  const value = node.value.replace(
    /\$(\$)?\{([A-Z_][A-Z0-9_]*)\}/g,
    (all, escaped: string | undefined, name: string) =>
      escaped ? all.slice(1) : (lookUp(name, { path, place: node.at }) ?? all),
  );
  return { ...node, value, hasVariable: value !== node.value };
}

/** A path in the usual notation: `hooks.mappings[0].id`. */
export function describePath(path: Path): string {
  return path.map((key, i) => (typeof key === "number" ? `[${key}]` : i === 0 ? key : `.${key}`)).join("");
}

const describePlace = ({ file, line }: Place): string => `${file}:${line}`;

function findNode(root: Node, path: Path): Node {
  let node = root;
  for (const key of path) {
    const next =
      node.kind === "object"
        ? node.entries.get(String(key))
        : node.kind === "array"
          ? node.items[Number(key)]
          : undefined;
    if (!next) break;
    node = next;
  }
  return node;
}

function valueOf(node: Node): unknown {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "array") return node.items.map(valueOf);
  return Object.fromEntries([...node.entries].map(([key, inner]) => [key, valueOf(inner)]));
}
