/** The houses of src/: their order, their rooms, their doors, and the rules for imports. */
import { join, normalize } from "node:path";

export interface Source {
  /** From the repository's root, with `/`. */
  readonly path: string;
  readonly text: string;
}
/** Returns the faults of a file, each with its line if it has one. */
export type Check = (source: Source) => string[];

/** Houses: folders of src/, lowest first. Each may import from those before it. */
export const HOUSES = "base engine library runtime page gateway server cli main.ts".split(" ");
/** Rooms of houses, lowest first; what a list does not name stands above its rooms. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  engine: "formats text program backends architectures vision audio hearing batching runner".split(" "),
  library: "store convert create registry".split(" "),
  runtime: "requests parse processes inference remote mcp".split(" "),
  gateway: "database channels agent hooks operate".split(" "),
  server: "metrics http schema answers requests models ollama openai anthropic responses routes".split(" "),
  cli: "client terminal commands run diagnostics update service".split(" "),
};
/** The files of each house that others may import. */
export const DOORS: Readonly<Record<string, readonly string[]>> = {
  base: "index system tracing schema config/index".split(" "),
  engine: "index portable media formats/index text/index architectures/index backends/index runner/process".split(" "),
  library: "index portable making".split(" "),
  runtime: "index portable check-model mcp/index mcp/names".split(" "),
  page: "assets build-ahead engine/runtime".split(" "),
  gateway: "index setup database/database operate/open operate/transfer/index agent/boundary/index".split(" "),
  server: ["index"],
  cli: ["command-line"],
};
/** The files of src from which kernels/ may import values, and files from which it may import types. */
const KERNEL_VALUES = /^src\/(base|engine\/formats\/quant)\/|^src\/engine\/program\/step\.ts$/;
const KERNEL_TYPES = /^src\/(base|engine\/(formats|text|program))\//;

/** The text with comments blanked, so that line numbers stay. Exact enough for formatted code. */
export function withoutComments(text: string): string {
  const blank = (comment: string): string => comment.replace(/[^\n]/g, " ");
  return text.replace(/^\s*\/\*[\s\S]*?\*\//gm, blank).replace(/(^|\s)\/\/.*$/gm, blank);
}

interface Import {
  readonly from: string;
  readonly typeOnly: boolean;
}

export function importsOf({ path, text }: Source): Import[] {
  const statement =
    /^\s*(?:import|export)\s(type\s)?[^;"']*?(?:from\s*)?["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/gm;
  return [...withoutComments(text).matchAll(statement)].map((match) => {
    const name = match[2] ?? match[3]!;
    const from = name.startsWith(".") ? normalize(join(path, "..", name)).replaceAll("\\", "/") : name;
    return { from, typeOnly: match[1] !== undefined };
  });
}

export const houseOf = (path: string): string => path.split("/")[1]!;

/** The position of a file's room in the order of its house. */
function rankOf(path: string): number {
  const [, house = "", room = ""] = path.split("/");
  const rooms = ROOMS[house] ?? [];
  return rooms.includes(room) ? rooms.indexOf(room) : rooms.length;
}

export const layers: Check = (source) =>
  importsOf(source).flatMap(({ from, typeOnly }) => {
    const { path } = source;
    if (/^(test|bench)\//.test(from)) return [`imports ${from}: the product needs neither tests nor benchmarks`];
    if (path.startsWith("kernels/")) {
      if (!from.startsWith("src/") || KERNEL_VALUES.test(from)) return [];
      return typeOnly && KERNEL_TYPES.test(from)
        ? []
        : [`imports ${from}: kernels take types of engine/program and below, and values of base and quant`];
    }
    if (from.startsWith("kernels/"))
      return path.startsWith("src/engine/backends/") ? [] : [`imports ${from}: only src/engine/backends does`];
    if (!from.startsWith("src/")) return [];
    const [own, other] = [houseOf(path), houseOf(from)];
    if (!HOUSES.includes(own)) return [`src/${own} is no house: add it to HOUSES`];
    if (!HOUSES.includes(other)) return [`imports ${from}: there is no such house`];
    const isBelow = own === other ? rankOf(from) <= rankOf(path) : HOUSES.indexOf(other) < HOUSES.indexOf(own);
    return isBelow ? [] : [`imports ${from}, which is above it`];
  });

/** Kernels belong to the engine: they may import its files, and doors of other houses. */
export const doors: Check = (source) =>
  importsOf(source).flatMap(({ from }) => {
    if (!from.startsWith("src/")) return [];
    const [own, other] = [source.path.startsWith("kernels/") ? "engine" : houseOf(source.path), houseOf(from)];
    const isDoor = DOORS[other]?.some((door) => from === `src/${other}/${door}.ts`);
    return own === other || isDoor ? [] : [`imports ${from}, which is no door of src/${other}`];
  });

/** Rooms of one house that import each other, directly or through others. */
export function roomCircles(sources: readonly Source[]): string[] {
  const uses = new Map<string, Set<string>>();
  const roomOf = (path: string): string => path.split("/").slice(0, -1).slice(0, 3).join("/");
  for (const source of sources.filter(({ path }) => path.startsWith("src/")))
    for (const { from } of importsOf(source)) {
      const [own, other] = [roomOf(source.path), roomOf(from)];
      if (/^src\/.*\.tsx?$/.test(from) && own !== other && houseOf(source.path) === houseOf(from))
        uses.set(own, (uses.get(own) ?? new Set()).add(other));
    }
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
    [...(uses.get(from) ?? [])].some((next) => next === to || (!seen.has(next) && reaches(next, to, seen.add(next))));
  return [...uses.keys()].filter((room) => reaches(room, room));
}
