/**
 * Imports and exports of modules, read from their text: finds circles of imports, types included, and unused exports.
 */
import { join, normalize } from "node:path";

export interface Module {
  /** From the repository's root, with `/`. */
  readonly path: string;
  /** Without comments. */
  readonly code: string;
}

interface Import {
  readonly from: string;
  /** False: its file is only named, and runs elsewhere. */
  readonly isLoaded: boolean;
  /** `*`: any of them. */
  readonly names: readonly string[];
}

const STATIC = /^\s*(?:import|export)\s+(?:type\s+)?([^;"'=()]*?)(?:\s*from\s*)?["'](\.[^"']+)["']/gm;
const DYNAMIC = /\b(import|URL)\(\s*["'`](?:\$\{\w+\}\/)?(\.[^"'`]+)["'`]/g;

function importsOf({ path, code }: Module): Import[] {
  const resolve = (name: string): string => normalize(join(path, "..", name)).replaceAll("\\", "/");
  const named = [...code.matchAll(STATIC)].map(([, what, from]): Import => {
    const inBraces = /\{([^}]*)\}/.exec(what!)?.[1];
    const words = (inBraces ?? "").split(",").map((each) => each.trim().replace(/^type\s+/, ""));
    const names = words.flatMap((each) => each.split(/\s+as\s+/)[0] || []);
    return { from: resolve(from!), isLoaded: true, names: inBraces === undefined ? ["*"] : names };
  });
  const dynamic = [...code.matchAll(DYNAMIC)].map(([, how, from]): Import => ({
    from: resolve(from!),
    isLoaded: how === "import",
    names: ["*"],
  }));
  return [...named, ...dynamic];
}

const loadedBy = (module: Module): string[] =>
  importsOf(module).flatMap(({ from, isLoaded }) => (isLoaded ? [from] : []));

/** Groups of modules that import each other in a circle. */
export function circlesOf(modules: readonly Module[]): string[][] {
  const graph = new Map(modules.map((module) => [module.path, loadedBy(module)]));
  const reachedFrom = new Map([...graph.keys()].map((path) => [path, reach(graph, path)]));
  const inCircle = [...reachedFrom].filter(([path, reached]) => reached.has(path)).map(([path]) => path);
  const circles = inCircle.map((path) => inCircle.filter((other) => isTogether(reachedFrom, path, other)));
  return [...new Map(circles.map((circle) => [circle.join(), circle])).values()];
}

const isTogether = (reached: ReadonlyMap<string, ReadonlySet<string>>, a: string, b: string): boolean =>
  reached.get(a)!.has(b) && reached.get(b)!.has(a);

function reach(graph: ReadonlyMap<string, readonly string[]>, path: string): Set<string> {
  const found = new Set(graph.get(path));
  for (const next of found) for (const other of graph.get(next) ?? []) found.add(other);
  return found;
}

/**
 * Exports of values that no other module of the product imports, unless tests need them and the module uses them
 * itself; and types that are not used at all. In the form `path: name`.
 */
export function unusedExports(modules: readonly Module[]): string[] {
  const [byProduct, byAny] = [new Set<string>(), new Set<string>()];
  for (const module of modules) {
    for (const { from, names } of importsOf(module)) {
      for (const name of names) {
        byAny.add(`${from}: ${name}`);
        if (!module.path.startsWith("test/")) byProduct.add(`${from}: ${name}`);
      }
    }
  }
  const declared =
    /^export\s+(?:abstract\s+)?(?:async\s+)?(const|let|function\*?|class|interface|type|enum)\s+([\w$]+)/gm;
  return modules
    .filter(({ path }) => /^(src|kernels)\//.test(path) && !byProduct.has(`${path}: *`))
    .flatMap(({ path, code }) =>
      [...code.matchAll(declared)].flatMap(([, kind, name]) => {
        const isUsedHere = code.split(new RegExp(`\\b${name}\\b`)).length > 2;
        const isType = kind === "interface" || kind === "type";
        const isNeeded = byProduct.has(`${path}: ${name}`) || (isUsedHere && (isType || byAny.has(`${path}: ${name}`)));
        return isNeeded ? [] : [`${path}: ${name}`];
      }),
    );
}
