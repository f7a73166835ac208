/** Models in two parts, both on the reference: the place of the cut makes no difference, to the bit. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Backend, LoadOptions, Program, Session } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { vectorDimOf } from "../../../src/engine/backends/check-batch.ts";
import { cutProgram, layerCount, loadSplit } from "../../../src/engine/program/split.ts";
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../src/engine/formats/files/write.ts";
import { makeAdapter, recordedAdapters } from "../architectures/adapters.ts";
import { encoders, makeEncoder } from "../architectures/encoders.ts";
import { makeModel, specs, TOKENS } from "../architectures/models.ts";
import { encode, exercise, options } from "../backends/exercise.ts";
import { simdLevels } from "../backends/simd/levels.ts";

let folder = "";
const open: Gguf[] = [];
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-split-"))));
afterAll(async () => {
  for (const gguf of open) gguf.close();
  await rm(folder, { recursive: true });
});

async function file(name: string, model: WriteModel): Promise<Gguf> {
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, model);
  const gguf = openGguf(path);
  open.push(gguf);
  return gguf;
}

const programOf = async (name: string): Promise<Program> => loadProgram(await file(name, makeModel(name)));

async function resultsOf(session: Session, use: (session: Session) => Promise<Float32Array>): Promise<Float32Array> {
  const results = (await use(session)).slice();
  session.close();
  return results;
}

/** Runs a program whole and cut before every layer and the output. */
async function expectSame(program: Program, use = exercise): Promise<void> {
  const whole = await resultsOf(await cpuBackend.load(program, options), use);
  for (let count = 1; count < layerCount(program); count++) {
    const split = await loadSplit(program, options, { front: cpuBackend, back: cpuBackend, count });
    expect(await resultsOf(split, use), `the last ${count}`).toEqual(whole);
  }
}

describe("a model split at any layer computes the same:", () => {
  for (const name of Object.keys(specs)) test(name, async () => expectSame(await programOf(name)), 60_000);
  for (const name of ["rwkv7", "arwkv7", "gemma3n", "kimi-k3", "deepseek4"])
    test(
      `${name}, whose first layer passes values to later layers`,
      async () => expectSame(await programOf(name)),
      60_000,
    );
  for (const [name, spec] of Object.entries(encoders)) {
    test(name, async () => expectSame(loadProgram(await file(name, makeEncoder(spec))), encode), 60_000);
  }
  test("llama with an adapter", async () => {
    const base = await file("base", makeModel("llama"));
    const adapter = await file("adapter", makeAdapter(makeModel("llama"), recordedAdapters["llama"]!));
    await expectSame(loadProgram(base, [adapter]));
  }, 60_000);
});

describe("rows of an image", () => {
  /** Ids, three rows of bidirectional vectors with their own positions, and ids again. */
  async function withImage(session: Session, program: Program): Promise<Float32Array> {
    const tokens = Int32Array.of(5, 9, -1, -1, -1, 7, 3);
    const vectors = Float32Array.from({ length: 3 * vectorDimOf(program.steps) }, (_, i) => Math.sin(i));
    const positions = Int32Array.of(0, 1, 2, 2, 2, 4, 5);
    const media = { vectors, positions, spans: [{ first: 2, end: 5 }] };
    const got = (await session.run([{ slot: 0, start: 0, tokens, ...media, logits: "all" }])).slice();
    const states = await session.states([{ slot: 1, start: 0, tokens, ...media, states: "last" }]);
    return Float32Array.from([...got, ...states]);
  }

  test("cross a split with their positions and spans", async () => {
    const program = await programOf("gemma3");
    await expectSame(program, (session) => withImage(session, program));
  });

  test("cannot be split before a layer that adds parts of them", async () => {
    const program = await programOf("llama");
    const added = { op: "addGiven", x: program.states, at: program.states.dim } as const;
    const deep = { ...program, steps: [...program.steps.slice(0, -2), added, ...program.steps.slice(-2)] };
    expect(() => cutProgram(deep, 1)).not.toThrow();
    expect(() => cutProgram(deep, 2)).toThrow("'llama' adds parts of images in layer 1 and behind");
  });
});

test("a model is not split between layers that share chosen positions", async () => {
  const program = await programOf("glm-dsa");
  expect(() => cutProgram(program, 2)).not.toThrow();
  expect(() => cutProgram(program, 3)).toThrow("layers from 1 on read keys or chosen positions of earlier layers");
});

test("the last layers, counting the output as one, are behind the split", async () => {
  const program = await programOf("gemma3"); // seven layers
  expect(layerCount(program)).toBe(8);
  const layersBehind = (count: number): number[] =>
    cutProgram(program, count).back.steps.flatMap((step) => (step.op === "attention" ? [step.layer] : []));
  expect([1, 2, 4, 7].map(layersBehind)).toEqual([[], [6], [4, 5, 6], [1, 2, 3, 4, 5, 6]]);
});

test("a split model has the bytes of both parts, and names their devices", async () => {
  const program = await programOf("qwen2"); // two layers
  const load = (part: Program): Promise<Session> => cpuBackend.load(part, options);
  const { front, back } = cutProgram(program, 2);
  const [first, last] = [await load(front), await load(back)];
  const onGpu: Backend = { ...cpuBackend, load: async (part) => asGpu(await load(part)) };
  const session = await loadSplit(program, options, { front: cpuBackend, back: onGpu, count: 2 });
  const sum = ({ weights, kv, scratch }: Session["bytes"]): number => weights + kv + scratch;
  expect(sum(session.bytes)).toBe(sum(first.bytes) + sum(last.bytes));
  expect(session.vramBytes).toBe(sum(last.bytes));
  expect(session.gpuLayers).toEqual({ count: 2, all: 3 });
  expect(session.backend).toBe("gpu+cpu");
  expect(session.device).toBe("Test GPU: 2 of 3 layers, CPU (1 thread, reference): the others");
});

/** A session of the reference that claims to be on a GPU. */
function asGpu(session: Session): Session {
  const { weights, kv, scratch } = session.bytes;
  return {
    backend: "gpu",
    device: "Test GPU",
    bytes: session.bytes,
    vramBytes: weights + kv + scratch,
    run: (batch) => session.run(batch),
    states: (batch) => session.states(batch),
    shift: (...args) => session.shift(...args),
    copy: (...args) => session.copy(...args),
    close: () => session.close(),
  };
}

describe("a split load", () => {
  /** Records events, and fails where `failing` says. */
  function parts(failing?: "front" | "back") {
    const events: string[] = [];
    const backend = (name: "front" | "back"): Backend => ({
      ...cpuBackend,
      async load(program: Program, loadOptions: LoadOptions) {
        events.push(name);
        if (name === failing) throw new Error(`no ${name}`);
        loadOptions.onProgress?.(0.5);
        return {
          ...asGpu(await cpuBackend.load(program, loadOptions)),
          close: () => void events.push(`close ${name}`),
        };
      },
    });
    return { events, front: backend("front"), back: backend("back") };
  }

  test("reports progress from 0 to 1 over both parts", async () => {
    const seen: number[] = [];
    const onProgress = (fraction: number): void => void seen.push(fraction);
    await loadSplit(await programOf("llama"), { ...options, onProgress }, { ...parts(), count: 1 });
    expect(seen.map((each) => each.toFixed(3))).toEqual(["0.167", "0.333", "0.667", "1.000"]);
  });

  test("loads the part on the GPU first, and closes it if the other part fails", async () => {
    const [first, second] = [parts("back"), parts("front")];
    const program = await programOf("llama");
    await expect(loadSplit(program, options, { ...first, count: 1 })).rejects.toThrow("no back");
    await expect(loadSplit(program, options, { ...second, count: 1 })).rejects.toThrow("no front");
    expect([first.events, second.events]).toEqual([["back"], ["back", "front", "close back"]]);
  });

  test("closes the first part if it is cancelled between the parts", async () => {
    const { events, ...backends } = parts();
    const abort = new AbortController();
    const cancelled = { ...options, signal: abort.signal, onProgress: () => abort.abort() };
    const load = loadSplit(await programOf("llama"), cancelled, { ...backends, count: 1 });
    await expect(load).rejects.toMatchObject({ code: "cancelled" });
    expect(events).toEqual(["back", "close back"]);
  });

  test("closes both parts when it is closed", async () => {
    const { events, ...backends } = parts();
    (await loadSplit(await programOf("llama"), options, { ...backends, count: 2 })).close();
    expect(events.toSorted()).toEqual(["back", "close back", "close front", "front"]);
  });
});

const [simd] = simdLevels;
test.skipIf(!simd)("a packed checkpoint of both parts is restored whole, and a damaged one is refused", async () => {
  const program = await programOf("qwen35");
  const { backend } = simd!;
  const session = await loadSplit(program, options, { front: backend, back: backend, count: 2 });
  const row = (slot: number) => ({ slot, start: 9, tokens: TOKENS.subarray(9, 10), logits: "last" }) as const;
  await session.run([{ slot: 0, start: 0, tokens: TOKENS.subarray(0, 9), logits: "none" }]);
  const checkpoint = await session.checkpoints!.save(0, 9);
  const { pack, unpack } = session.blocks!.checkpoints!;
  const packed = await pack(checkpoint);
  for (const bytes of [packed.slice(0, -1), packed.slice(1), Uint8Array.of(...packed, 0), new Uint8Array(2)])
    expect(unpack(9, bytes)).toBeUndefined();
  const block = await session.blocks!.read(0, 0, 9);
  expect(block.length).toBe(session.blocks!.bytesOf(9));
  await session.blocks!.write(1, { first: 0, count: 9, bytes: block });
  session.checkpoints!.restore(1, unpack(9, packed)!);
  const expected = (await session.run([row(0)])).slice();
  expect((await session.run([row(1)])).slice()).toEqual(expected);
  const short = async () => session.blocks!.write(1, { first: 0, count: 9, bytes: block.slice(1) });
  await expect(short()).rejects.toThrow("a block of 9 positions");
  session.close();
});

test("an error about NaN names the layers, in front of the split and behind it", async () => {
  const program = await programOf("smollm3"); // five layers
  const broken = (tensor: string): Program => {
    const read = (name: string): Uint8Array =>
      name === tensor ? new Uint8Array(program.weights.read(name).length).fill(0xff) : program.weights.read(name);
    return { ...program, weights: { path: program.weights.path, read } };
  };
  const failure = async (tensor: string): Promise<string> => {
    const session = await loadSplit(broken(tensor), options, { front: cpuBackend, back: cpuBackend, count: 3 });
    const batch = [{ slot: 0, start: 0, tokens: TOKENS.subarray(0, 2), logits: "last" }] as const;
    return session.run(batch).then(String, ({ message }: Error) => message);
  };
  expect(await failure("blk.1.ffn_down.weight")).toMatch(
    /^layers 0 to 2, on CPU .*'blk\.1\.ffn_gate\.weight'.*got NaN/,
  );
  expect(await failure("blk.4.attn_v.weight")).toMatch(/smollm3.gguf: step \d+ \(linear with 'blk\.4\.attn_v\.weight'/);
});
