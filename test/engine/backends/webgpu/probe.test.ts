/** The probe of a GPU runs on a software adapter, so that it works when there is a GPU. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { swiftShaderEnv } from "./swiftshader.ts";

const PROBE = resolve(import.meta.dir, "../../../../bench/gpu-probe.ts");

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-probe-"))));
afterAll(() => rm(folder, { recursive: true }));

test("the probe measures every section on a software adapter, and writes the results to a file", async () => {
  const json = join(folder, "probe.json");
  const child = Bun.spawn([process.execPath, PROBE, "--json", json, "--toggles", "disable_robustness"], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stdio: ["ignore", "ignore", "inherit"],
  });
  expect(await child.exited).toBe(0);
  const { toggles, rows } = (await Bun.file(json).json()) as { toggles: string; rows: Record<string, number>[] };
  expect(toggles).toBe("disable_robustness");
  const sections = ["adapter", "read", "gap", "wait", "linear", "rows", "attention"];
  expect([...new Set(rows.map(({ section }) => String(section)))]).toEqual(sections);
  for (const { GBs, ms, us, usEach } of rows.slice(3)) expect(GBs ?? ms ?? us ?? usEach).toBeGreaterThan(0);
}, 120_000);

test("an unknown section is refused with the names of the known sections", async () => {
  const child = Bun.spawn([process.execPath, PROBE, "speed"], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  expect(await child.stderr.text()).toContain("speed: expected adapter, read, gap, wait, linear, rows, attention");
  expect(await child.exited).toBe(1);
}, 60_000);
