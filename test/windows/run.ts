/**
 * Runs the tests of list.ts on Windows and compares their failures with the failures that list.ts expects:
 *
 *   bun test/windows/run.ts COMMAND…
 *
 * COMMAND is a Bun for Windows: `bun` there, `.ci/wine bun` on Linux. Ends with status 1 where anything differs.
 */
import { FAILING, RUN } from "./list.ts";

const paths = RUN.map((path) => `test/${path}`);
const child = Bun.spawn([...Bun.argv.slice(2), "test", "--timeout", "240000", ...paths], {
  stdio: ["ignore", "pipe", "pipe"],
});
const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
await child.exited;
if (out === "" && err === "")
  throw new Error(`${Bun.argv.slice(2).join(" ")}: ended with status ${child.exitCode} and said nothing`);

const complaints = compare(`${out}\n${err}`);
const [pass = "0", skip = "0"] = ["pass", "skip"].map((word) => new RegExp(`^ *(\\d+) ${word}$`, "m").exec(err)?.[1]);
for (const complaint of complaints) console.log(complaint);
console.log(
  `Windows: ${pass} passed, ${skip} skipped, ${FAILING.length} expected to fail, ${complaints.length} complaints`,
);
process.exit(complaints.length > 0 || pass === "0" ? 1 : 0);

/** Compares the output of a run with the list. Returns what differs, with the output that belongs to it. */
function compare(output: string): string[] {
  const found: string[] = [];
  const failed = new Map<string, string>();
  // Failures are repeated at the end of the output
  const [during = ""] = output.replaceAll("\r", "").split(/^\d+ tests failed:$/m);
  let since = 0;
  for (const line of during.matchAll(/^\((pass|fail)\) (.*?)(?: \[[\d.]+ms\])?$/gm)) {
    if (line[1] === "fail") failed.set(line[2]!, during.slice(since, line.index + line[0].length + 80));
    since = line.index + line[0].length;
  }
  for (const { test, says } of FAILING) {
    const own = failed.get(test);
    if (own === undefined) found.push(`${test}: expected to fail: take it out of test/windows/list.ts`);
    else if (!own.includes(says)) found.push(`${test}: expected to say '${says}':\n${own}`);
    failed.delete(test);
  }
  for (const [test, own] of failed) found.push(`${test}: failed:\n${own}`);
  return found;
}
