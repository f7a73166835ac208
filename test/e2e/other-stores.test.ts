/** The store of an Ollama on this machine: found automatically, served, listed, and never changed. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { putModel } from "../library/fixture.ts";
import { runHearth, startHearth } from "./hearth.ts";

setDefaultTimeout(60_000);

const home = mkdtempSync(join(tmpdir(), "hearth-theirs-"));
const theirs = join(home, ".ollama", "models");
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Every file with its time of change. */
async function stateOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true });
  return Promise.all(entries.sort().map(async (name) => `${name} ${(await stat(join(folder, name))).mtimeMs}`));
}

test("serve and list name Ollama's store, show finds its models, and delete refuses them", async () => {
  await putModel(theirs, "found", { texts: [["system", "From over there."]] });
  const before = await stateOf(theirs);
  const hearth = await startHearth({ home });
  const env = { HEARTH_HOST: hearth.url };
  try {
    expect(hearth.greeting).toContain(`${theirs} (read only)`);
    const { stdout, stderr } = await runHearth(["list"], { home, env });
    expect(stdout).toContain("found:latest");
    expect(stderr).toStartWith("1 of these is read-only, in Ollama's store;");
    expect((await runHearth(["show", "found", "--system"], { home, env })).stdout).toBe("From over there.\n");
    expect((await runHearth(["rm", "found"], { home, env })).stderr).toContain(
      "which Hearth only reads: delete it there",
    );
    expect((await runHearth(["cp", "found", "mine"], { home, env })).code).toBe(0);
    expect((await runHearth(["rm", "mine"], { home, env })).code).toBe(0);
    const response = await fetch(`${hearth.url}/api/delete`, { method: "DELETE", body: '{"model":"found"}' });
    expect(response.status).toBe(403);
  } finally {
    await hearth.stop();
  }
  expect(await stateOf(theirs)).toEqual(before);
});

test("HEARTH_OTHER_STORES=false ignores Ollama's store", async () => {
  await putModel(theirs, "found");
  const hearth = await startHearth({ home, env: { HEARTH_OTHER_STORES: "false" } });
  try {
    expect(hearth.greeting).not.toContain("read only");
    const { stdout } = await runHearth(["list"], { home, env: { HEARTH_HOST: hearth.url } });
    expect(stdout).not.toContain("found");
  } finally {
    await hearth.stop();
  }
});
