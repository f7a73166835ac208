/** Self-tests of kernel libraries: planted faults, and kept results. x64 on Linux. */
import { afterAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { levelsHere, libraryFolder } from "../../../src/engine/backends/host/simd-library.ts";
import { Trust, type Verdict } from "../../../src/engine/backends/host/trust.ts";
import { drawn } from "../../seed.ts";
import { layOut } from "./simd/image.ts";

const COMMAND = [process.execPath, resolve(import.meta.dir, "../../../src/main.ts")];
const scratch = mkdtempSync(join(tmpdir(), "hearth-trust-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const [best] = levelsHere();
/** The planted code is x64 code in an ELF file. */
const here = best !== undefined && process.platform === "linux" && process.arch === "x64";

/** A copy of the libraries in which the best one is changed, and its checksum with it. */
function planted(change: (bytes: Buffer) => void): string {
  const folder = mkdtempSync(join(scratch, "lib-"));
  cpSync(libraryFolder(), folder, { recursive: true });
  const file = join(folder, basename(best!.file));
  const bytes = readFileSync(file);
  change(bytes);
  writeFileSync(file, bytes);
  writeSums(folder);
  return folder;
}

function writeSums(folder: string): void {
  const sum = (name: string) => new Bun.CryptoHasher("sha256").update(readFileSync(join(folder, name))).digest("hex");
  const names = readdirSync(folder).filter((name) => /\.(so|dylib|dll|wasm)$/.test(name));
  writeFileSync(join(folder, "SHA256SUMS"), names.map((name) => `${sum(name)}  ${name}\n`).join(""));
}

const trustIn = (folder: string, cacheDir?: string, command = COMMAND): Trust =>
  new Trust({ cacheDir, command, env: process.env, folder });

/** The offset in the file of the function that runs a pass. */
const entryOf = (bytes: Buffer): number => {
  const address = layOut(bytes).exports.get("hearth_run")!;
  const [headers, count] = [Number(bytes.readBigUInt64LE(32)), bytes.readUInt16LE(56)];
  for (let i = 0; i < count; i++) {
    const at = headers + 56 * i;
    const [offset, start, length] = [8, 16, 32].map((field) => Number(bytes.readBigUInt64LE(at + field)));
    if (bytes.readUInt32LE(at) === 1 && address >= start! && address < start! + length!)
      return address - start! + offset!;
  }
  throw new Error("hearth_run lies in no segment");
};

/** Replaces the first bytes of the function that runs a pass. */
const atEntry =
  (...code: number[]) =>
  (bytes: Buffer): void =>
    void bytes.set(code, entryOf(bytes));

/** Changes a constant that the kernels compute with, wherever it lies. */
const constant = (value: number) => (bytes: Buffer) => {
  const [old, changed] = [Buffer.alloc(4), Buffer.alloc(4)];
  old.writeFloatLE(value);
  changed.writeFloatLE(value * 1.001);
  expect(bytes.indexOf(old)).toBeGreaterThan(0);
  for (let at = bytes.indexOf(old); at >= 0; at = bytes.indexOf(old, at + 1)) changed.copy(bytes, at);
};

/** Flips a bit of a table. */
const inTable =
  (...table: number[]) =>
  (bytes: Buffer): void => {
    const at = bytes.indexOf(Buffer.from(table));
    expect(at).toBeGreaterThan(0);
    bytes[at + 1]! ^= 4;
  };

/**
 * Flips all bits of 16 bytes of code, this far after the start of the function that runs a pass: more than the target
 * of a jump that no pass takes, where a fault would not show.
 */
const afterEntry =
  (by: number) =>
  (bytes: Buffer): void => {
    const at = entryOf(bytes) + by;
    for (let i = at; i < at + 16; i++) bytes[i]! ^= 0xff;
  };

/** The system call `nanosleep` (35) for 2^40 seconds, with the time on the stack; then an endless loop. */
const SLEEP = Buffer.from("6a0048b80000000000010000504889e731f6b8230000000f05ebfe", "hex");

/** With AVX-512 the values are shifted to 0 … 255. */
const IQ4_SHIFT = best?.file.includes("vnni") ? 0x80 : 0;

/** A run plants some of them, drawn by its seed. */
const FAULTS: readonly (readonly [string, (bytes: Buffer) => void])[] = [
  ["an instruction that the processor lacks", atEntry(0x0f, 0x0b)],
  ["a trap", atEntry(0xcc)],
  ["an endless loop", atEntry(0xeb, 0xfe)],
  ["a pass that does nothing", atEntry(0xc3)],
  ["a privileged instruction", atEntry(0xf4)],
  ["a write to address 0", atEntry(0x31, 0xc0, 0x89, 0x00)],
  ["a jump into nowhere", atEntry(0x31, 0xc0, 0xff, 0xe0)],
  ["an endless sleep", atEntry(...SLEEP)],
  ["an endless recursion", atEntry(0x50, 0xe8, 0xfa, 0xff, 0xff, 0xff)],
  ["log2(e) of exp", constant(1.44269504)],
  ["ln(2) of exp", constant(-0.693359375)],
  ["a coefficient of exp", constant(1.6666665459e-1)],
  ["a coefficient of tanh", constant(0.053968254)],
  ["a coefficient of erf", constant(1.061405429)],
  ["the slope of gelu", constant(0.7978845608)],
  ["the slope of swiglu", constant(-1.702)],
  ["the values of iq4", inTable(...[-127, -104, -83, -65].map((value) => (value & 255) ^ IQ4_SHIFT))],
  ...[0x40, 0x55, 0x80].map((by) => [`16 bytes of code, ${by} behind the entry`, afterEntry(by)] as const),
];

describe.skipIf(!here)("a fault in a library disables its level, and the process continues", () => {
  const cacheDir = join(scratch, "cache");
  test("the best level passes if its library has no fault, and is not tested again", async () => {
    const verdicts = await trustIn(libraryFolder(), cacheDir).verdicts();
    expect(verdicts.map(({ level, fault }) => [level.level, fault])).toEqual([[best!.level, undefined]]);
    const all = await trustIn(libraryFolder(), cacheDir).testAll();
    expect(all.map(({ level }) => level.level)).toEqual([...levelsHere().map(({ level }) => level), "wasm"]);
    const kept = await trustIn(libraryFolder(), cacheDir, ["/nowhere/hearth"]).verdicts(); // it would fail to start
    expect(kept).toEqual(verdicts);
  }, 60_000);

  test.each(drawn("planted faults", FAULTS, 2))(
    "%s",
    async (_, change) => {
      const verdicts = await trustIn(planted(change), cacheDir).verdicts(); // the next level is known to pass
      expect(verdicts[0]).toMatchObject({ level: { level: best!.level }, fault: expect.any(String) });
      expect(verdicts.at(-1)!.level.file).not.toBe(verdicts[0]!.level.file);
      expect(verdicts.at(-1)!.fault).toBeUndefined();
    },
    180_000,
  );
});

test.skipIf(!here)(
  "the self-test of a library that sleeps ends after 2 seconds, on a busy machine after 8 or 32",
  async () => {
    const begin = performance.now();
    const [verdict] = await trustIn(planted(atEntry(...SLEEP))).verdicts(); // kept results are not used
    const seconds = (performance.now() - begin) / 1000;
    expect(verdict!.fault).toMatch(/^no answer within (2|8|32) s$/); // 2: unless the machine is busy
    if (verdict!.fault === "no answer within 2 s") expect(seconds).toBeGreaterThan(2);
  },
  180_000,
);

/** Changes the file of the kernels as WebAssembly, and the checksums. */
function plantedWasm(folder: string): string {
  const file = join(folder, "simd.wasm");
  const bytes = readFileSync(file);
  constant(1.44269504)(bytes);
  writeFileSync(file, bytes);
  writeSums(folder);
  return folder;
}

test.skipIf(!here)(
  "WebAssembly is tested if no library passes, and is not trusted if its results are wrong",
  async () => {
    const cacheDir = join(scratch, "no-library");
    const folder = planted(() => {});
    for (const { file } of levelsHere(folder)) writeFileSync(file, "not a library");
    const levels = async () =>
      (await trustIn(folder, cacheDir).verdicts()).map(({ level, fault }) => [level.level, fault === undefined]);
    const broken = levelsHere(folder).map(({ level }) => [level, false]);
    expect(await levels()).toEqual([...broken, ["wasm", true]]);
    plantedWasm(folder);
    expect(await levels()).toEqual([...broken, ["wasm", false]]);
    expect((await trustIn(folder, cacheDir).wasmVerdict())?.fault).toBe("wrong results");
  },
  60_000,
);

const faults = (verdicts: readonly Verdict[] | undefined) => verdicts?.map(({ fault }) => fault);

test.skipIf(!here)(
  "a fault is stored, and is known without another test",
  async () => {
    const cacheDir = join(scratch, "faults");
    const folder = planted(atEntry(0x0f, 0x0b));
    expect(await trustIn(folder, cacheDir).known()).toBeUndefined();
    const [first] = await trustIn(folder, cacheDir).verdicts();
    expect(first!.fault).toBe("it ended the test: signal SIGILL");
    expect(faults(await trustIn(folder, cacheDir).known())).toEqual([first!.fault, undefined]);
    // another library of that name is another one
    expect(await trustIn(planted(atEntry(0xcc)), cacheDir).known()).toBeUndefined();
  },
  60_000,
);

test.skipIf(!here)("a self-test that does not start is not stored as a fault of the library", async () => {
  const cacheDir = join(scratch, "unstarted");
  const failed = await trustIn(libraryFolder(), cacheDir, ["/bin/false"]).verdicts();
  expect(new Set(faults(failed))).toEqual(new Set(["its self-test did not start: exit code 1"]));
  const missing = await trustIn(libraryFolder(), cacheDir, ["/nowhere/hearth"]).verdicts();
  expect(new Set(faults(missing)).size).toBe(1);
  expect(faults(missing)![0]).toMatch(/^its self-test did not start: ENOENT/);
  expect(await trustIn(libraryFolder(), cacheDir).known()).toBeUndefined();
});

test.skipIf(!here)("a library with a wrong checksum fails without a test", async () => {
  const folder = planted(() => {});
  const file = join(folder, basename(best!.file));
  const bytes = readFileSync(file);
  bytes[2000]! ^= 1;
  writeFileSync(file, bytes);
  const [verdict] = await trustIn(folder, join(scratch, "cache")).verdicts();
  expect(verdict!.fault).toContain("damaged: expected SHA-256 ");
});

test.skipIf(!here)(
  "no library is trusted without the list of known answers",
  async () => {
    const folder = planted(() => {});
    rmSync(join(folder, "KNOWN_ANSWERS"));
    const verdicts = await trustIn(folder, join(scratch, "unknown")).verdicts();
    expect(verdicts).toHaveLength(levelsHere().length + 1); // and WebAssembly
    expect(new Set(faults(verdicts))).toEqual(new Set(["its answer is not known"]));
  },
  60_000,
);

test.skipIf(!here)(
  "an endless self-test ends when its parent process ends",
  async () => {
    const [level] = levelsHere(planted(atEntry(0xeb, 0xfe)));
    const command = JSON.stringify([...COMMAND, "selftest-child", JSON.stringify(level)]);
    const script = `console.log(Bun.spawn(${command}, { stdio: ["ignore", "inherit", "ignore"] }).pid);`;
    const parent = Bun.spawn([process.execPath, "-e", script], { stdio: ["ignore", "pipe", "ignore"] });
    let said = "";
    let isLate = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    for await (const bytes of parent.stdout) {
      said += Buffer.from(bytes).toString();
      if (timer !== undefined || !/^\d+$/m.test(said) || !said.includes("begun")) continue;
      parent.kill("SIGKILL");
      timer = setTimeout(() => {
        isLate = true;
        process.kill(Number(/^\d+$/m.exec(said)![0]), "SIGKILL");
      }, 20_000);
    } // the output ends when both have ended
    clearTimeout(timer);
    expect({ hasBegun: said.includes("begun"), isLate }).toEqual({ hasBegun: true, isLate: false });
  },
  60_000,
);
