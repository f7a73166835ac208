/** The search for the fastest kernels of a device, and the file with its results. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatTuning, PLAIN, SIZES, type SizeName, type Tuning } from "../../../../src/base/kernel-tuning.ts";
import { shapeOf } from "../../../../src/engine/backends/webgpu/choose-tuning.ts";
import { checkedOr, STAGES, type Tunings } from "../../../../src/engine/backends/webgpu/tune.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { drawn } from "../../../seed.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-tune-"))));
afterAll(() => rm(folder, { recursive: true }));

async function ask<T>(...args: string[]): Promise<T> {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/tune.ts`, ...args], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stderr: "inherit",
  });
  const text = await child.stdout.text();
  expect(await child.exited).toBe(0);
  return JSON.parse(text) as T;
}

function expectTuning(tuning: Tuning): void {
  for (const [name, sizes] of Object.entries(SIZES))
    expect<readonly number[]>(sizes).toContain(tuning[name as SizeName]);
}

describe("a search", () => {
  test("finds kernels that the device can run, with products of bytes in the fast result only", async () => {
    for (const without of drawn("devices to search on", [[], ["timestamp-query", "subgroups"]], 1)) {
      const { exact, fast, stages } = await ask<Tunings>("search", "", ...without);
      expect(stages).toBe(STAGES);
      expectTuning(exact);
      expectTuning(fast);
      expect(exact.packed).toBe(false);
    }
  }, 120_000);

  test("refuses kernels with wrong results", async () => {
    const tuning = { ...PLAIN, threads: 32 };
    const trial = (of: (value: number) => number) => ({
      results: (_: unknown, { threads }: Tuning) =>
        Promise.resolve(Float32Array.of(1, -2, 3).map((value) => (threads === 32 ? of(value) : value))),
    });
    const found: Tuning[] = [];
    const onWrong = (each: Tuning) => void found.push(each);
    const check = (of: (value: number) => number) => checkedOr(PLAIN, trial(of), { tuning, nmseMax: 1e-6, onWrong });
    expect(await check((value) => value * 1.000_1)).toBe(tuning);
    expect(found).toEqual([]);
    for (const wrong of [() => 0, () => NaN, (value: number) => value * 1.01]) expect(await check(wrong)).toBe(PLAIN);
    expect(found).toEqual([tuning, tuning, tuning]);
  });

  test("allows the rounding of bytes for few rows only", async () => {
    const tuning = { ...PLAIN, threads: 32 };
    const resultOf = (different: string): Promise<Tuning> =>
      checkedOr(
        PLAIN,
        {
          results: (kind, { threads }) =>
            Promise.resolve(Float32Array.of(1, kind === different && threads === 32 ? 1.005 : 1)),
        },
        { tuning, nmseMax: 1e-4 },
      );
    expect(await resultOf("gemv")).toBe(tuning);
    for (const kind of ["gemm", "experts"]) expect(await resultOf(kind)).toBe(PLAIN);
  });

  test("returns the plain kernels if it has no time", async () => {
    expect(await ask<Tunings>("hurry")).toEqual({ exact: PLAIN, fast: PLAIN, stages: 0 });
  }, 60_000);
});

describe("the file of search results", () => {
  const path = (): string => join(folder, "gpu-kernels.json");
  const found: Tuning = { ...PLAIN, threads: 128, columns: 2 };
  const written = async () =>
    (await Bun.file(path()).json()) as Record<string, { exact: string; fast: string; stages: number }>;

  test("is read before a search, and keeps the entries of other GPUs", async () => {
    const key = await ask<string>("key");
    const others = { "another GPU": { exact: formatTuning(PLAIN), fast: formatTuning(PLAIN), stages: STAGES } };
    const entry = { exact: formatTuning(found), fast: formatTuning({ ...found, packed: true }), stages: STAGES };
    await Bun.write(path(), JSON.stringify({ ...others, [key]: entry }));
    expect(await ask<Tunings>("cached", folder)).toEqual({
      exact: found,
      fast: { ...found, packed: true },
      stages: STAGES,
    });
    expect(Object.keys(await written())).toEqual(["another GPU", key]);
  }, 60_000);

  test("lets the next search continue one that ended early", async () => {
    const key = await ask<string>("key");
    const wrong = ["q4_0: threads=64,columns=4,tile=64x64,matrix"];
    const entry = { exact: formatTuning(found), fast: formatTuning(found), stages: STAGES - 1, wrong };
    await Bun.write(path(), JSON.stringify({ [key]: entry }));
    expect(await ask<Tunings>("cached", folder)).toEqual({ exact: found, fast: found, stages: STAGES - 1, wrong });
    const { exact, stages, wrong: still } = await ask<Tunings>("resume", folder);
    expect(still).toEqual(wrong);
    expect(stages).toBe(STAGES);
    expect([PLAIN, found]).toContainEqual(exact); // the last stage only looks at products of bytes
    expect((await written())[key]!.stages).toBe(STAGES);
  }, 60_000);

  const broken: [string, string | ((key: string) => string)][] = [
    ["is no JSON", "{ broken"],
    ["is no object", "null"],
    [
      "has an invalid entry",
      (key: string) => JSON.stringify({ [key]: { exact: "threads=7", fast: "plain", stages: 1 } }),
    ],
    [
      "lacks the number of finished stages",
      (key: string) => JSON.stringify({ [key]: { exact: "threads=32", fast: "plain" } }),
    ],
    [
      "has kernels that this device cannot run",
      (key: string) => JSON.stringify({ [key]: { exact: "f16", fast: "f16", stages: 1 } }),
    ],
    ["is huge", " ".repeat(2 ** 20 + 1)],
  ];
  test.each(drawn("broken files of kernels", broken, 2))(
    "is replaced if it %s",
    async (_, content) => {
      const key = await ask<string>("key");
      await Bun.write(path(), typeof content === "string" ? content : content(key));
      const plain = formatTuning(PLAIN);
      expect(await ask<Tunings>("cached", folder, "shader-f16")).toEqual({ exact: PLAIN, fast: PLAIN, stages: 0 });
      expect(await written()).toEqual({ [key]: { exact: plain, fast: plain, stages: 0 } });
      expect(await readdir(folder)).toEqual(["gpu-kernels.json"]);
    },
    60_000,
  );
});

test("block types besides the searched one are compared once for each device", async () => {
  const path = join(folder, "gpu-kernels.json");
  const key = await ask<string>("key");
  const tuning = "threads=32,columns=8,tile=32x64,packed";
  const entry = { exact: "threads=64,columns=4,tile=32x64,loads16", fast: tuning, stages: STAGES };
  await Bun.write(path, JSON.stringify({ [key]: entry }));
  const { exact, fast, checked } = await ask<Tunings>("others", folder);
  expect([exact, fast].map(formatTuning)).toEqual([entry.exact, tuning]);
  expect(checked).toEqual(["q6_K", "f32"]);
  expect(await Bun.file(path).json()).toEqual({ [key]: { ...entry, checked } });
}, 60_000);

test("products of bytes are chosen automatically, unless precision is requested or the model is small", async () => {
  const key = await ask<string>("key");
  const [exact, fast] = ["threads=128,columns=2,tile=32x64,loads16", "threads=32,columns=8,tile=32x64,packed"];
  await Bun.write(join(folder, "gpu-kernels.json"), JSON.stringify({ [key]: { exact, fast, stages: STAGES } }));
  const chosen = await ask<Record<string, string>>("choose as on hardware", folder);
  expect(chosen).toEqual({ auto: fast, exact, precise: exact, small: exact });
}, 60_000);

test("a software adapter runs the plain kernels without a search", async () => {
  const empty = join(folder, "empty");
  expect(await ask<Tuning>("choose", empty)).toEqual(PLAIN);
  expect(await Bun.file(join(empty, "gpu-kernels.json")).exists()).toBe(false);
}, 60_000);

test("the block type of most of a model's bytes decides the search for its kernels", () => {
  const matrix = (quant: "q4_K" | "q6_K", inDim: number, outDim: number) =>
    ({ name: "w", quant: quants[quant], inDim, outDim, rowStart: 0, tensorRows: outDim, experts: 1 }) as const;
  expect(shapeOf([])).toBeUndefined();
  expect(shapeOf([matrix("q6_K", 2048, 100), matrix("q4_K", 2048, 90), matrix("q4_K", 4096, 60)])).toEqual({
    quant: "q4_K",
    dim: 4096,
    others: ["q6_K"],
  });
  expect(shapeOf([matrix("q6_K", 1536, 10), matrix("q6_K", 14_336, 1)])).toEqual({ quant: "q6_K", dim: 1024 });
});
