/** A server in a control group with little memory: a request for more fails, and its runner survives. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installFile } from "../../bench/install-file.ts";
import { writeGguf, type WriteTensor, type WriteValue } from "../../src/engine/formats/files/write.ts";
import { quants } from "../../src/engine/formats/quant/index.ts";
import { eventually, startHearth } from "../e2e/hearth.ts";
import { simdLevels } from "../engine/backends/simd/levels.ts";

setDefaultTimeout(120_000);

const MIB = 2 ** 20;
const LIMIT = 376 * MIB;
/** A token's keys and values take 256 KiB; a whole context takes more than the group's limit. */
const [LAYERS, HEADS, HEAD_DIM, CTX_LEN] = [4, 32, 512, 2048];
const DIM = 32;
const VOCAB = 512;

interface Group {
  readonly folder: string;
  /** Number of its processes ended by the OOM killer. */
  kills(): number;
}

/** A group with this limit, in either version of control groups; undefined if it cannot be made. */
function makeGroup(bytes: number): Group | undefined {
  const name = `hearth-memory-test-${process.pid}`;
  const read = (folder: string, file: string): string => readFileSync(join(folder, file), "utf8");
  const killsIn = (folder: string, file: string) => (): number =>
    Number(/^oom_kill (\d+)$/m.exec(read(folder, file))?.[1]);
  for (const { root, limit, events } of [
    { root: "/sys/fs/cgroup/memory", limit: "memory.limit_in_bytes", events: "memory.oom_control" },
    { root: "/sys/fs/cgroup", limit: "memory.max", events: "memory.events" },
  ]) {
    const folder = join(root, name);
    try {
      mkdirSync(folder);
    } catch {
      continue; // this version is missing, or not permitted
    }
    try {
      writeFileSync(join(folder, limit), String(bytes));
      const kills = killsIn(folder, events);
      if (Number.isInteger(kills())) return { folder, kills };
    } catch {
      // a group without a limit
    }
    rmdirSync(folder);
  }
  return undefined;
}

const group = simdLevels.length > 0 ? makeGroup(LIMIT) : undefined;
const home = mkdtempSync(join(tmpdir(), "hearth-memory-"));
afterAll(async () => {
  rmSync(home, { recursive: true, force: true });
  if (group) expect(await eventually(() => isRemoved(group.folder))).toBe(true); // empty once its processes have ended
});

function isRemoved(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

/** Few weights, and wide keys and values. */
async function installWide(): Promise<string> {
  const width = HEADS * HEAD_DIM;
  const of = (name: string, shape: readonly number[], value: (i: number) => number): WriteTensor => {
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => value(i));
    return { name, shape, quant: quants.f32, data: new Uint8Array(values.buffer) };
  };
  const norm = (name: string): WriteTensor => of(name, [DIM], () => 1);
  const matrix = (name: string, inDim: number, outDim: number): WriteTensor =>
    of(name, [inDim, outDim], (i) => (((i * 7919) % 2003) / 1000 - 1) / 10);
  const layers = Array.from({ length: LAYERS }, (_, i) => [
    norm(`blk.${i}.attn_norm.weight`),
    norm(`blk.${i}.ffn_norm.weight`),
    ...["q", "k", "v"].map((each) => matrix(`blk.${i}.attn_${each}.weight`, DIM, width)),
    matrix(`blk.${i}.attn_output.weight`, width, DIM),
    ...["gate", "up", "down"].map((each) => matrix(`blk.${i}.ffn_${each}.weight`, DIM, DIM)),
  ]);
  const u32 = (value: number): WriteValue => ({ u32: value });
  const file = join(home, "wide.gguf");
  await writeGguf(file, {
    metadata: {
      "general.architecture": "llama",
      "llama.context_length": u32(65_536),
      "llama.embedding_length": u32(DIM),
      "llama.block_count": u32(LAYERS),
      "llama.feed_forward_length": u32(DIM),
      "llama.attention.head_count": u32(HEADS),
      "llama.attention.head_count_kv": u32(HEADS),
      "llama.attention.key_length": u32(HEAD_DIM),
      "llama.attention.value_length": u32(HEAD_DIM),
      "llama.rope.dimension_count": u32(64),
      "llama.attention.layer_norm_rms_epsilon": { f32: 1e-5 },
      "tokenizer.ggml.model": "gpt2",
      "tokenizer.ggml.pre": "default",
      "tokenizer.ggml.tokens": Array.from({ length: VOCAB }, (_, i) => (i < 95 ? letter(i + 32) : `<token ${i}>`)),
      "tokenizer.ggml.token_type": new Int32Array(VOCAB).fill(1),
      "tokenizer.ggml.merges": ["a b"],
      "tokenizer.ggml.eos_token_id": u32(VOCAB - 1),
      "tokenizer.ggml.add_bos_token": false,
    },
    tensors: [matrix("token_embd.weight", DIM, VOCAB), norm("output_norm.weight"), ...layers.flat()],
  });
  return installFile({ root: join(home, ".hearth", "models"), file, name: "wide" });
}

/** A byte as byte-level BPE writes it. */
const letter = (byte: number): string => String.fromCodePoint(byte === 32 ? 288 : byte);

test.skipIf(!group)(
  "a request whose keys and values exceed the free memory fails, and the runner continues",
  async () => {
    const model = await installWide();
    const env = { HEARTH_CONTEXT_LENGTH: String(CTX_LEN), HEARTH_NUM_PARALLEL: "2" };
    const hearth = await startHearth({ home, env });
    writeFileSync(join(group!.folder, "cgroup.procs"), String(hearth.pid));
    try {
      const ask = async (prompt: string) => {
        const options = { num_predict: 4, temperature: 0 };
        const reply = await hearth.post("/api/generate", { model, prompt, raw: true, stream: false, options });
        return { status: reply.status, body: (await reply.json()) as { error?: string; response?: string } };
      };
      const first = await ask("hello");
      const [runner] = await hearth.runnerPids();
      const long = (letters: string, share: number): string => letters.repeat((CTX_LEN * share) / letters.length);
      for (const letters of ["abcdefgh", "ijklmnop"]) {
        const { status, body } = await ask(long(letters, 0.9));
        expect(status).toBe(503);
        expect(body.error).toMatch(
          /^out of memory: keys and values of \d+ tokens: expected \d+ MiB free, got \d+ MiB$/,
        );
        expect((await ask("hello")).body.response).toBe(first.body.response!);
      }
      const shorter = await Promise.all(["ab", "cd", "ef", "gh"].map((letters) => ask(long(letters, 0.1))));
      for (const { status } of shorter) expect(status).toBe(200);
      expect((await ask("hello")).body.response).toBe(first.body.response!);
      expect(await hearth.runnerPids()).toEqual([runner!]);
      expect(group!.kills()).toBe(0);
    } finally {
      await hearth.stop();
    }
  },
);
