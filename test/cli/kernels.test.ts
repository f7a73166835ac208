/** Commands that run a model without a server load no kernels before these have passed their self-test. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { levelsHere } from "../../src/engine/backends/host/simd-library.ts";

const SOURCE = resolve(import.meta.dir, "../..");
const home = mkdtempSync(join(tmpdir(), "hearth-kernels-"));
afterAll(() => rmSync(home, { recursive: true }));

/** Runs a command with a new home folder; returns the results of self-tests that it kept. */
function keptBy(name: string, backend: string): Record<string, string> {
  const own = join(home, `${name}-${backend}`);
  const model = join(SOURCE, "models/hearth/hearth.gguf");
  const more = name === "generate" ? ["--greedy", "1"] : ["--out", join(home, "logits")];
  const { exitCode, stderr } = Bun.spawnSync(
    [process.execPath, join(SOURCE, "src/main.ts"), name, "--model", model, "--tokens", "1,2", ...more],
    { env: { PATH: process.env["PATH"]!, HOME: own, HEARTH_BACKEND: backend }, stdio: ["ignore", "ignore", "pipe"] },
  );
  expect(exitCode, stderr.toString()).toBe(0);
  return JSON.parse(readFileSync(join(own, ".cache/hearth/cpu-kernels.json"), "utf8")) as Record<string, string>;
}

test.skipIf(process.platform !== "linux")(
  "generate and logits test the kernels that they load, and keep the result",
  () => {
    const level = levelsHere()[0]?.level ?? "wasm";
    for (const [name, backend, tested] of [
      ["generate", "simd", level],
      ["logits", "auto", level],
      ["generate", "wasm", "wasm"],
    ] as const) {
      const [[key, result] = []] = Object.entries(keptBy(name, backend));
      expect([key!.split(" ")[0], result]).toEqual([tested, "passed"]);
    }
  },
  60_000,
);
