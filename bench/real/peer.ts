/**
 * Runs llama.cpp on the same real weights as Hearth: a small program (peer.cpp) against the libraries that the package
 * node-llama-cpp ships, built once with g++ into the cache folder.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realFolder } from "./fetch.ts";

export interface Peer {
  /** Ids of each text, no special tokens added. @param special true: texts of control tokens become these tokens */
  tokens(model: string, texts: readonly string[], special: boolean): Promise<Int32Array[]>;
  /** The ids that end an answer, ascending. */
  ends(model: string): Promise<Int32Array>;
  /** Logits of all positions of each sequence, (positions, vocabulary). */
  logits(model: string, sequences: readonly Int32Array[], cache: Cache): Promise<LogitsFile>;
  /** −ln p of the tokens after position `first` of each sequence; by default of all tokens except the first. */
  losses(model: string, sequences: readonly Int32Array[], cache: Cache, first?: number): Promise<Float32Array[]>;
  /** Greedy continuation of each sequence: at most `count` tokens, including the one that ends it. */
  greedy(model: string, sequences: readonly Int32Array[], count: number): Promise<Int32Array[]>;
  /** The pooled vector of each sequence, not normalised. */
  vectors(model: string, sequences: readonly Int32Array[]): Promise<Float32Array[]>;
  /** @param type a number of `general.file_type` */
  quantize(from: string, to: string, type: number): Promise<void>;
}
interface Cache {
  readonly ctxLen: number;
  /** Type of the keys and of the values. */
  readonly kv: "f32" | "f16" | "q8_0" | "q4_0";
}
/** Logits of many positions in a file, because they may exceed the memory. */
export interface LogitsFile {
  /** Reads the logits of one sequence, or of `count` of its positions from `first` on: (positions, vocabulary). */
  read(index: number, first?: number, count?: number): Promise<Float32Array>;
  remove(): void;
}

const BENCH = join(import.meta.dir, "..");

/** Throws if g++ or the package is missing (`bun install --cwd bench`). */
export async function openPeer({ threads = 2 } = {}): Promise<Peer> {
  const platform = `${process.platform}-${process.arch}`;
  const backends = join(BENCH, "node_modules/@node-llama-cpp", platform, "bins", platform);
  if (!existsSync(backends)) throw new Error(`${backends}: not there; bun install --cwd bench`);
  const program = await build(backends);
  const env = { ...process.env, BACKENDS: backends, THREADS: `${threads}` };
  const run = (given: readonly string[]): Promise<void> => command([program, ...given], env);
  /** Runs the program on an input file, and keeps its output in a folder. */
  const start = async (given: readonly [string, string], input: Uint8Array[], more: readonly string[] = []) => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-peer-"));
    const remove = (): void => rmSync(folder, { recursive: true });
    const out = join(folder, "out");
    try {
      await Bun.write(join(folder, "in"), Buffer.concat(input));
      await run([...given, join(folder, "in"), out, ...more]);
    } catch (error) {
      remove();
      throw error;
    }
    return { out, remove };
  };
  const bytesOf = async (...given: Parameters<typeof start>): Promise<ArrayBuffer> => {
    const { out, remove } = await start(...given);
    return Bun.file(out).arrayBuffer().finally(remove);
  };
  return {
    tokens: async (model, texts, special) =>
      listsOf(await bytesOf(["tokens", model], texts.map(packText), [special ? "1" : "0"])),
    ends: async (model) => listsOf(await bytesOf(["ends", model], []))[0]!,
    async greedy(model, sequences, count) {
      const longest = Math.max(...sequences.map(({ length }) => length)) + count;
      return listsOf(await bytesOf(["greedy", model], sequences.map(packIds), [`${longest}`, `${count}`]));
    },
    async losses(model, sequences, { ctxLen, kv }, first = 0) {
      const more = [`${ctxLen}`, kv, kv, `${first}`];
      const all = new Float32Array(await bytesOf(["losses", model], sequences.map(packIds), more));
      let at = 0;
      return sequences.map(({ length }) => all.slice(at, (at += length - 1 - first)));
    },
    async vectors(model, sequences) {
      const all = new Float32Array(await bytesOf(["vectors", model], sequences.map(packIds), ["512"]));
      const dim = all.length / sequences.length;
      return sequences.map((_, i) => all.slice(i * dim, (i + 1) * dim));
    },
    async logits(model, sequences, { ctxLen, kv }) {
      const { out, remove } = await start(["logits", model], sequences.map(packIds), [`${ctxLen}`, kv, kv]);
      const starts = [0];
      for (const { length } of sequences) starts.push(starts.at(-1)! + length);
      const rowBytes = Bun.file(out).size / starts.at(-1)!;
      const read = async (i: number, first = 0, count = sequences[i]!.length - first): Promise<Float32Array> => {
        const start = starts[i]! + first;
        const bytes = Bun.file(out).slice(start * rowBytes, (start + count) * rowBytes);
        return new Float32Array(await bytes.arrayBuffer());
      };
      return { read, remove };
    },
    quantize: (from, to, type) => run(["quantize", from, to, `${type}`, `${threads}`]),
  };
}

/** Builds the program unless the same source was built before; the headers come from the sources in the package. */
async function build(backends: string): Promise<string> {
  const source = await Bun.file(join(import.meta.dir, "peer.cpp")).text();
  const program = join(realFolder(), `peer-${Bun.hash(source + backends).toString(16)}`);
  if (existsSync(program)) return program;
  mkdirSync(realFolder(), { recursive: true });
  const sources = join(realFolder(), "llama.cpp");
  if (!existsSync(sources)) {
    const bundle = join(BENCH, "node_modules/node-llama-cpp/llama/gitRelease.bundle");
    await command(["git", "clone", "--quiet", "--config", "advice.detachedHead=false", bundle, sources]);
  }
  const libraries = readdirSync(backends).filter((name) => /^lib(llama\.v.*|ggml\.v.*|ggml-base)\.so$/.test(name));
  const includes = ["include", "ggml/include"].map((each) => `-I${join(sources, each)}`);
  const links = [...libraries.map((name) => join(backends, name)), `-Wl,-rpath,${backends}`];
  await command(["g++", "-O2", "-std=c++17", ...includes, join(import.meta.dir, "peer.cpp"), ...links, "-o", program]);
  return program;
}

async function command(words: string[], env: Record<string, string | undefined> = process.env): Promise<void> {
  const child = Bun.spawn(words, { env, stdio: ["ignore", "ignore", "pipe"] });
  const [errors, code] = await Promise.all([child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${words.slice(0, 2).join(" ")}: ended with ${code}: ${errors.slice(-800)}`);
}

const packText = (text: string): Uint8Array => pack(Buffer.from(text), Buffer.byteLength(text));
const packIds = (ids: Int32Array): Uint8Array =>
  pack(Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength), ids.length);

function pack(bytes: Buffer, count: number): Uint8Array {
  const head = Buffer.alloc(4);
  head.writeUInt32LE(count);
  return Buffer.concat([head, bytes]);
}

function listsOf(bytes: ArrayBuffer): Int32Array[] {
  const words = new Int32Array(bytes);
  const lists: Int32Array[] = [];
  for (let at = 0; at < words.length; at += 1 + words[at]!) lists.push(words.slice(at + 1, at + 1 + words[at]!));
  return lists;
}
