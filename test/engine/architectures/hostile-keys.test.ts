/**
 * Files with metadata changed by an attacker, one key at a time: a model either runs, or its load or its run fails with
 * an error that names the file. It never fails by an internal invariant, and never accesses memory out of bounds. A
 * random sample of all such changes, another in each run: see test/seed.ts.
 */
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, setDefaultTimeout, test } from "bun:test";
import { loadDraftLayer, loadProgram } from "../../../src/engine/architectures/index.ts";
import { chooseBackend } from "../../../src/engine/backends/index.ts";
import { loadOptionsFor } from "../../../src/engine/backends/small.ts";
import { AppError, messageOf } from "../../../src/base/errors.ts";
import { poolingOf } from "../../../src/engine/batching/pooling.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import type { Gguf, MetadataArray, MetadataValue } from "../../../src/engine/formats/gguf/gguf.ts";
import { repairGguf } from "../../../src/engine/formats/gguf/repair/index.ts";
import { encodeGguf, withFolder, type MemoryModel } from "../formats/gguf/fixture.ts";
import { golden, goldenTest } from "../../golden.ts";
import { testRng } from "../../seed.ts";
import { makeModel, modelNames } from "./models.ts";

setDefaultTimeout(120_000);

const CHANGES = 250;
const NUMBERS = [0, 1, 2, 3, 7, -1, 2 ** 31, 2 ** 53, NaN];
const ITEMS = [0, 1, 7, 2 ** 31 - 1, -1];

type Change = readonly [name: string, value: MetadataValue | undefined];

const isNumbers = (value: MetadataArray): value is Extract<MetadataArray, Float32Array | Int32Array> =>
  ArrayBuffer.isView(value);

/** Changed values of a key. */
function changesOf(value: MetadataValue): Change[] {
  const others: Change[] = [
    ["gone", undefined],
    ["another type", typeof value === "string" ? 3 : "x"],
  ];
  if (typeof value === "number") {
    const near = [value - 1, value + 1, value * 2, Math.floor(value / 2)];
    return [...others, ...[...NUMBERS, ...near].map((each): Change => [String(each), each])];
  }
  if (typeof value === "boolean") return [...others, [String(!value), !value]];
  if (typeof value !== "object") return others;
  const shorter = value.slice(0, -1) as MetadataArray;
  const changes: Change[] = [...others, ["shorter", shorter], ["empty", value.slice(0, 0) as MetadataArray]];
  if (isNumbers(value)) {
    const longer = new (value.constructor as Int32ArrayConstructor)(value.length + 1);
    longer.set(value);
    changes.push(["longer", longer]);
    for (const each of ITEMS) changes.push([`an item of ${each}`, value.slice().fill(each, 0, 1)]);
  } else changes.push(["longer", [...value, ...value.slice(0, 1)] as MetadataArray]);
  return changes;
}

/** Loads a model and runs three tokens. */
async function run(gguf: Gguf): Promise<void> {
  const repaired = repairGguf(gguf);
  const program = loadProgram(repaired);
  loadDraftLayer(repaired);
  const options = { ctxLen: 8, slots: 1, precise: false, threads: 1, cacheDir: undefined };
  const session = await (await chooseBackend("cpu")).load(program, loadOptionsFor(program, options));
  try {
    const rows = { slot: 0, start: 0, tokens: Int32Array.of(1, 2, 3) };
    const pooling = poolingOf(repaired, { arch: program.shape.arch, encoder: true });
    if (program.logits) await session.run([{ ...rows, logits: "last" }]);
    else await session.states([{ ...rows, states: pooling === "mean" ? "all" : pooling }]);
  } finally {
    session.close();
  }
}

/** The problem with the outcome of a change; undefined: none. */
async function wrongOf(gguf: Gguf, key: string, value: MetadataValue | undefined): Promise<string | undefined> {
  const metadata = new Map(gguf.metadata);
  if (value === undefined) metadata.delete(key);
  else metadata.set(key, value);
  try {
    await run({ ...gguf, metadata });
  } catch (error) {
    const isClear = error instanceof AppError && messageOf(error).includes(basename(gguf.path));
    if (!isClear) return messageOf(error);
  }
  return undefined;
}

async function tryChanges(paths: readonly string[]): Promise<void> {
  const rng = testRng("hostile keys");
  const wrong: string[] = [];
  for (let i = 0; i < CHANGES; i++) {
    const pick = <T>(all: readonly T[]): T => all[Math.floor(rng.float() * all.length)]!;
    const gguf = openGguf(pick(paths));
    const keys = [...gguf.metadata.keys()].filter((key) => !/^(tokenizer|general)\./.test(key));
    const key = pick(keys);
    const [name, value] = pick(changesOf(gguf.metadata.get(key)!));
    const message = await wrongOf(gguf, key, value);
    if (message !== undefined) wrong.push(`${basename(gguf.path)}: '${key}' ${name}: ${message}`);
    gguf.close();
  }
  expect(wrong).toEqual([]);
}

test("models made in code load after a change of any key, or fail with an error that names the file", () =>
  withFolder(async (path) => {
    const paths = modelNames.map((name) => path(`${name}.gguf`));
    for (const name of modelNames) await Bun.write(path(`${name}.gguf`), encodeGguf(makeModel(name) as MemoryModel));
    await tryChanges(paths);
  }));

goldenTest("reference models load after a change of any key, or fail with an error that names the file", () =>
  tryChanges(
    ["archs", "real", "twins"].flatMap((folder) =>
      readdirSync(golden(folder))
        .filter((file) => file.endsWith(".gguf"))
        .map((file) => golden(join(folder, file))),
    ),
  ),
);
