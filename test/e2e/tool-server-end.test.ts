/** A tool server that ignores the end of its input ends with the server that started it. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, test } from "bun:test";
import { isAlive, startHearth } from "./hearth.ts";

test("a tool server that ignores the end of its input does not outlive Hearth", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-tools-"));
  mkdirSync(join(home, ".hearth"));
  const mark = join(home, "pid");
  const args = [resolve(import.meta.dir, "../runtime/mcp/scripted-server.ts"), "stays", mark];
  const mcp = { servers: { stays: { command: process.execPath, args } } };
  writeFileSync(join(home, ".hearth", "hearth.json5"), JSON.stringify({ mcp }), { mode: 0o600 });
  const hearth = await startHearth({ home });
  try {
    expect((await hearth.post("/api/mcp/call", { server: "stays", tool: "t", arguments: {} })).status).toBe(200);
    const pid = Number(readFileSync(mark, "utf8"));
    expect(await isAlive(pid)).toBe(true);
    hearth.process.kill("SIGTERM");
    expect(await hearth.process.exited).toBe(0);
    expect(await isAlive(pid)).toBe(false);
  } finally {
    await hearth.stop();
    rmSync(home, { recursive: true, force: true });
  }
}, 60_000);
