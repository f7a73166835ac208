/** Builds small C++ programs against llama.cpp's source folder, which was built in its `build`. */
import { join } from "node:path";

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

async function run(command: string[], env: Record<string, string> = {}): Promise<void> {
  const child = Bun.spawn(command, { env: { ...process.env, ...env }, stdio: ["ignore", "inherit", "inherit"] });
  if ((await child.exited) !== 0) throw new Error(`${command[0]} failed with ${child.exitCode}`);
}
