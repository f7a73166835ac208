/** `hearth run` with a model for speech. A scripted server says how many bytes of which file it got. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { runHearth } from "./hearth.ts";

setDefaultTimeout(60_000);

const home = mkdtempSync(join(tmpdir(), "hearth-transcribe-"));
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    if (!request.url.endsWith("/v1/audio/transcriptions")) return Response.json({ capabilities: ["transcription"] });
    const file = (await request.formData()).get("file") as File;
    return Response.json({ text: `${file.name}: ${file.size} bytes` });
  },
});
afterAll(async () => {
  await server.stop(true);
  rmSync(home, { recursive: true, force: true });
});

const run = (args: string[], stdin = "") =>
  runHearth(["run", "speech", ...args], { home, stdin, env: { HEARTH_HOST: `127.0.0.1:${server.port}` } });

test("each file has its text on a line, and so has a recording on standard input", async () => {
  const files = [join(home, "New Recording 7.m4a"), join(home, "b.wav")];
  for (const [i, path] of files.entries()) await Bun.write(path, "x".repeat(10 + i));
  expect(await run(files)).toEqual({ code: 0, stdout: "New Recording 7.m4a: 10 bytes\nb.wav: 11 bytes\n", stderr: "" });
  expect(await run([], "sound")).toEqual({ code: 0, stdout: "standard input: 5 bytes\n", stderr: "" });
});

test("no recording, and a missing file, are errors that say so", async () => {
  const none = await run([]);
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("models for speech require a recording")]);
  const path = join(home, "nope.wav");
  const missing = await run([path]);
  expect([missing.code, missing.stderr]).toEqual([1, `Error: ${path}: expected a recording, got no such file\n`]);
});
