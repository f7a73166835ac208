/** Small C++ programs beside llama.cpp's own code, built against a source folder that was built in its `build`. */
import { join } from "node:path";

interface Parts {
  /** Of a source file in this folder, without its ending. */
  readonly name: string;
  /** Where the program goes. */
  readonly folder: string;
  /** Folders of headers, relative to the source. */
  readonly includes: readonly string[];
  /** Beside llama and ggml. */
  readonly libraries?: readonly string[];
}

/** Builds it with g++. Returns what runs it, which throws where it fails. */
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
