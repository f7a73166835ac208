/** Bars of pull, push and create at a terminal: their end, and their state after Ctrl+C. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { runHearth } from "./hearth.ts";
import { sitDownAt, type Person } from "./person.ts";

setDefaultTimeout(60_000);

const DIGEST = `sha256:${"ab".repeat(32)}`;
const TOTAL = 4_000_000_000;
const home = mkdtempSync(join(tmpdir(), "hearth-progress-"));
let server: ReturnType<typeof Bun.serve>;
/** True if transfers end. */
let ends = true;

async function* transfer(): AsyncGenerator<string> {
  const line = (event: object): string => `${JSON.stringify(event)}\n`;
  yield line({ status: "pulling manifest" });
  for (let n = 1; n <= 8 || !ends; n++) {
    yield line({ status: `pulling ${DIGEST.slice(7, 19)}`, digest: DIGEST, total: TOTAL, completed: n * 1e6 });
    await Bun.sleep(50);
  }
  yield line({ status: `pulling ${DIGEST.slice(7, 19)}`, digest: DIGEST, total: TOTAL, completed: TOTAL });
  yield line({ status: "success" });
}

beforeAll(() => {
  writeFileSync(join(home, "Modelfile"), "FROM m\n");
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => (/\/api\/(show|version)$/.test(url) ? Response.json({}) : new Response(transfer())),
  });
});
afterAll(() => {
  void server.stop(true);
  rmSync(home, { recursive: true });
});

const COMMANDS = {
  pull: ["pull", "m"],
  push: ["push", "m"],
  create: ["create", "m", "-f", join(home, "Modelfile")],
};
const env = (): Record<string, string> => ({ HEARTH_HOST: `127.0.0.1:${server.port}` });
const sitDown = (args: readonly string[]): Person => sitDownAt(args, home, env());

test("progress bars show the time left, and success is the last line", async () => {
  ends = false;
  const person = sitDown(COMMANDS.pull);
  expect(await person.sees(/\d+ [MG]B\/4 GB +[\d.]+ [KMG]B\/s +[\dhms]+ left/)).toBe(true);
  ends = true;
  expect(await person.ended()).toBe(0);
  expect(await person.sees(/100% █+ 4 GB\/4 GB[^]*\nsuccess\r\n$/)).toBe(true);
  expect(person.screen().match(/success/g)).toHaveLength(1);
  const bars = person.screen().match(/pulling abab[^\p{Cc}]+ left/gu)!; // a terminal cuts what is longer
  expect(Math.max(...bars.map((bar) => Bun.stringWidth(bar)))).toBeLessThanOrEqual(80);
});

test("success is the last line on a pipe, too", async () => {
  ends = true;
  const { stdout, stderr, code } = await runHearth(COMMANDS.pull, { home, env: env() });
  expect([code, stdout, stderr.split("\n").at(-2)]).toEqual([0, "", "success"]);
});

test.each([
  ["pull", "the part that came"],
  ["push", "the part that arrived"],
  ["create", "what was uploaded"],
] as const)("Ctrl+C ends %s with 130 and says that %s is kept", async (command, kept) => {
  ends = false;
  const person = sitDown(COMMANDS[command]);
  expect(await person.sees(/[MG]B\/4 GB/)).toBe(true);
  person.child.terminal!.write("\x03");
  expect(await person.ended()).toBe(130);
  expect(await person.sees(`stopped; ${kept} is kept: run the same command again\r\n`)).toBe(true);
  expect(person.screen()).not.toContain("Error");
});
