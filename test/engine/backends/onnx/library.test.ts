/** Conditions before ONNX Runtime is loaded, and the absence of its telemetry afterwards. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Session } from "../../../../src/engine/program/backend.ts";
import { checkVersion, findLibrary, openLibraryAt } from "../../../../src/engine/backends/onnx/library.ts";
import { conformanceCases } from "../../../conformance/cases.ts";
import { startHearth } from "../../../e2e/hearth.ts";
import { startOnnx } from "../child.ts";

const LIBRARY = resolve(import.meta.dir, "../../../../src/engine/backends/onnx/library.ts");
const { program, batches } = conformanceCases().find(({ name }) => name.startsWith("linear"))!;
const options = { ctxLen: 40, slots: 3, precise: false, threads: 1, cacheDir: undefined };

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hearth-onnx-library-"));
  mkdirSync(join(folder, "none"));
  // Made before the search: Bun caches the content of folders.
  const manifest = join(folder, "half", "node_modules", "onnxruntime-node", "package.json");
  await Bun.write(manifest, '{"name":"onnxruntime-node","version":"1.30.0"}');
});
afterAll(() => rm(folder, { recursive: true }));

/** The message of an AppError, or undefined if nothing was thrown. */
function failureOf(act: () => unknown): unknown {
  try {
    act();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Files and devices that a process has open, from /proc. */
const openFiles = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return []; // closed meanwhile
    }
  });
const hasLibrary = (pid: number): boolean => /libonnxruntime/.test(readFileSync(`/proc/${pid}/maps`, "utf8"));
const REPORTS = /microsoft|mat-debug/i; // the names of version 1.30.0's queue and log

describe("finding the library", () => {
  test("a package that is not installed is reported by name", () => {
    expect(findLibrary(join(folder, "none"))).toEqual({
      reason: expect.stringMatching(/^package onnxruntime-node is not installed: /),
    });
  });

  test("a package without the file for this machine names the paths that were tried", () => {
    const home = join(folder, "half");
    const place = join(home, "node_modules", "onnxruntime-node", "bin", "napi-v6", process.platform, process.arch);
    const found = findLibrary(home);
    expect(found).toEqual({ reason: expect.stringContaining(`ONNX Runtime library not found: tried ${place}`) });
  });

  test("a file that is no library is refused by path", async () => {
    const path = join(folder, "library");
    await Bun.write(path, "not a library");
    const failure = failureOf(() => openLibraryAt(path));
    expect(failure).toMatchObject({ code: "unsupported" });
    expect(String(failure)).toContain(`${path}: cannot be loaded: `);
  });

  test.skipIf(process.platform !== "linux")("a library that is not ONNX Runtime is refused by path", () => {
    const failure = failureOf(() => openLibraryAt("libc.so.6"));
    expect(failure).toMatchObject({ code: "unsupported" });
    expect(String(failure)).toContain("libc.so.6: cannot be loaded: ");
  });

  test("versions from 1.25 and below 2 are accepted, and others are refused by path and version", () => {
    for (const version of ["1.25.0", "1.30.0", "1.99.1"])
      expect(failureOf(() => checkVersion(version, "ort"))).toBeUndefined();
    for (const version of ["1.24.9", "1.3.0", "0.30.0", "2.0.0", "unknown", "", "11.30.0"]) {
      expect(failureOf(() => checkVersion(version, "ort"))).toMatchObject({
        code: "unsupported",
        message: `ort: expected ONNX Runtime 1.25 or newer, found '${version}'`,
      });
    }
  });
});

describe("usage reports", () => {
  const refusal = {
    code: "unsupported",
    message:
      "ONNX Runtime would report usage to its vendor: " +
      "start the process with ORT_DISABLE_TELEMETRY=1 in its environment",
  };

  for (const native of [true, false]) {
    const how = native ? "the C API" : "the JavaScript binding";
    test.skipIf(process.platform !== "linux")(`${how} is not loaded unless ORT_DISABLE_TELEMETRY is set`, async () => {
      const child = startOnnx({ telemetryOff: false, native });
      try {
        expect(await child.backend.load(program, options).catch((error: unknown) => error)).toMatchObject(refusal);
        expect(hasLibrary(child.pid)).toBe(false);
      } finally {
        await child.stop();
      }
    });

    test.skipIf(process.platform !== "linux")(
      `${how} runs with ORT_DISABLE_TELEMETRY set, and opens no file of reports`,
      async () => {
        const child = startOnnx({ native });
        try {
          const session: Session = await child.backend.load(program, options);
          for (const batch of batches) await session.run(batch);
          expect(hasLibrary(child.pid)).toBe(true);
          expect(openFiles(child.pid).filter((path) => REPORTS.test(path))).toEqual([]);
        } finally {
          await child.stop();
        }
      },
    );
  }

  test("a process that sets ORT_DISABLE_TELEMETRY in JavaScript is refused", () => {
    const { ORT_DISABLE_TELEMETRY: _, ...env } = process.env;
    const code = `process.env.ORT_DISABLE_TELEMETRY = "1"; (await import(${JSON.stringify(LIBRARY)})).checkTelemetryOff()`;
    const { exitCode, stderr } = Bun.spawnSync([process.execPath, "-e", code], { env });
    expect(exitCode).not.toBe(0);
    expect(stderr.toString()).toContain(refusal.message);
  });

  test.skipIf(process.platform !== "linux")(
    "the server and its runner open no file of reports",
    async () => {
      const hearth = await startHearth({ env: { HEARTH_BACKEND: "onnx" } });
      try {
        const body = { model: "hearth", prompt: "Hello", stream: false, options: { num_predict: 3 } };
        expect((await hearth.post("/api/generate", body)).status).toBe(200);
        const runners = await hearth.runnerPids();
        expect(runners.filter(hasLibrary)).toHaveLength(1);
        for (const pid of [hearth.pid, ...runners]) {
          expect(openFiles(pid).filter((path) => REPORTS.test(path))).toEqual([]);
        }
        expect(hasLibrary(hearth.pid)).toBe(false);
      } finally {
        await hearth.stop();
      }
    },
    30_000,
  );
});
