/**
 * No kernel reads outside of a tensor or has undefined behaviour: random shapes and hostile ids, positions, weights and
 * router scores in a build with sanitizers, if clang 19 and its runtime are installed. For longer runs see
 * kernels/simd/README.md.
 */
import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { testSeed } from "../../../seed.ts";
import { simdLevels } from "./levels.ts";

const ROUNDS = 400;
const FUZZ = resolve(import.meta.dir, "../../../../kernels/simd/fuzz/build.sh");
const folder = mkdtempSync(join(tmpdir(), "hearth-fuzz-"));
afterAll(() => rmSync(folder, { recursive: true }));

const run = (...command: string[]) => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stdio: ["ignore", "pipe", "pipe"] });
  return { exitCode, text: stdout.toString() + stderr.toString() };
};
const runtime = Bun.which("clang-19")
  ? run("clang-19", "--print-resource-dir").text.trim() + "/lib/linux/libclang_rt.asan-x86_64.a"
  : "";
const canSanitize =
  process.platform === "linux" && process.arch === "x64" && simdLevels.length > 0 && existsSync(runtime);

test.skipIf(!canSanitize)(
  "hostile passes raise no fault in a build with sanitizers (clang-19, libclang-rt-19-dev)",
  () => {
    const program = join(folder, "fuzz");
    expect(run(FUZZ, program)).toEqual({ exitCode: 0, text: "" });
    const broken = run(program, "--broken");
    expect(broken.exitCode).not.toBe(0);
    expect(broken.text).toContain("heap-buffer-overflow");
    expect(run(program, String(testSeed), String(ROUNDS))).toEqual({
      exitCode: 0,
      text: `${ROUNDS} rounds from seed ${testSeed}\n`,
    });
  },
  120_000,
);
