/** Builds small C++ programs against llama.cpp's source folder, which was built in its `build`. */
import { join } from "node:path";
import { outputOf } from "./llama-programs.ts";

interface Parts {
  /** Name of a source file in this folder, without its ending. */
  readonly name: string;
  /** Folder of the program. */
  readonly folder: string;
  /** Folders of headers, relative to the source. */
  readonly includes: readonly string[];
  /** Besides llama and ggml. */
  readonly libraries?: readonly string[];
}

/** Builds it with g++. Returns a function that runs it, which throws if it fails. */
export async function programBeside(
  source: string,
  parts: Parts,
): Promise<(given: readonly string[]) => Promise<void>> {
  const { name, folder, includes, libraries = [] } = parts;
  const built = join(source, "build/bin");
  const program = join(folder, name);
  const headers = includes.map((each) => `-I${join(source, each)}`);
  const links = [`-L${built}`, ...[...libraries, "llama", "ggml", "ggml-base"].map((each) => `-l${each}`)];
  await run(["g++", "-std=c++17", ...headers, join(import.meta.dir, `${name}.cpp`), ...links, "-o", program]);
  return (given) => run([program, ...given], { LD_LIBRARY_PATH: built });
}

/** Writes lines to a program that was built beside `source`; returns the lines of its answer. */
export async function linesOf(
  source: string,
  { program, name, lines }: { program: string; name: string; lines: readonly string[] },
): Promise<string[]> {
  const env = { ...process.env, LD_LIBRARY_PATH: join(source, "build/bin") };
  const stdin = new Blob([`${lines.join("\n")}\n`]);
  const child = Bun.spawn([program], { env, stdin, stdout: "pipe", stderr: "pipe" });
  return (await outputOf(child, name)).trimEnd().split("\n");
}

async function run(command: string[], env: Record<string, string> = {}): Promise<void> {
  const child = Bun.spawn(command, { env: { ...process.env, ...env }, stdio: ["ignore", "inherit", "inherit"] });
  if ((await child.exited) !== 0) throw new Error(`${command[0]} failed with ${child.exitCode}`);
}
