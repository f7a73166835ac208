/** `hearth mcp`: the configured tool servers, tried with a scripted one. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "bun:test";
import { afterTest, cleanUp } from "../../cleanups.ts";
import { HEARTH } from "../../program.ts";

afterEach(cleanUp);

const SCRIPTED = join(import.meta.dir, "../../runtime/mcp/scripted-server.ts");
const scripted = (how: string) => ({ command: process.execPath, args: [SCRIPTED, how] });

/** Runs the command on a configuration with these servers. */
async function hearth(servers: object, ...words: string[]) {
  const home = mkdtempSync(join(tmpdir(), "hearth-mcp-"));
  afterTest(() => rmSync(home, { recursive: true, force: true }));
  const config = join(home, "hearth.json5");
  writeFileSync(config, JSON.stringify({ mcp: { servers } }));
  const child = Bun.spawn([...HEARTH, "mcp", ...words, "--config", config], { stdio: ["ignore", "pipe", "pipe"] });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { out, err, code: await child.exited };
}

test("list names the servers without starting them", async () => {
  const servers = {
    here: { command: "no-such-program", args: ["-x"] },
    there: { url: "https://h.example/mcp?key=s3cret" },
  };
  const { out, code } = await hearth(servers, "list");
  expect(code).toBe(0);
  expect(out).toMatch(/^here +stdio +no-such-program -x$/m);
  expect(out).toMatch(/^there +http +https:\/\/h\.example\/mcp$/m);
  const { err } = await hearth({}, "list");
  expect(err).toBe("Error: no tool server is configured: add one to 'mcp.servers' of hearth.json5\n");
});

test("test says which servers answer, and fails if one does not", async () => {
  const { out, code } = await hearth({ good: scripted("good"), bad: scripted("dies-at-once") }, "test");
  expect(code).toBe(1);
  expect(out).toMatch(/^good +ok +scripted 1 +1$/m);
  expect(out).toMatch(/^bad +failed .*no licence found$/m);
  expect((await hearth({ good: scripted("good"), bad: scripted("dies-at-once") }, "test", "good")).code).toBe(0);
}, 30_000);

test("tools lists a server's tools, and names the excluded ones", async () => {
  const { out, err, code } = await hearth({ liar: scripted("lies") }, "tools", "liar");
  expect(code).toBe(0);
  expect(out).toMatch(/^good +is good$/m);
  expect(err).toContain("left out: there are two tools 'good'");
  const json = await hearth({ liar: scripted("lies") }, "tools", "liar", "--json");
  expect(JSON.parse(json.out)).toMatchObject([{ name: "good", inputSchema: { type: "object" } }]);
}, 30_000);

test("an error of the file names its line", async () => {
  const { err, code } = await hearth({ one: {} }, "list");
  expect(code).toBe(1);
  expect(err).toMatch(/hearth\.json5:1: mcp\.servers\.one: expected either 'command' or 'url'/);
});
