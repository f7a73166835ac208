/**
 * The backend and its kernels in a page of a headless browser, against the reference. Skipped, by name, where the
 * browser of the development dependencies cannot start.
 */
import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuBackend } from "../../../src/backend/cpu.ts";
import { conformanceCases, runCase, type Case } from "../../conformance/cases.ts";
import { expectClose } from "../compare.ts";
import { runnableCases } from "./chosen-cases.ts";
import { ROUTES, type PageAnswer, type PageWork } from "./page.ts";
import { browserPath } from "./swiftshader.ts";

/** Nothing that the browser would fetch or send of its own accord; WebGPU on its own software adapter. */
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu-sandbox",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
];

/** A script that cannot even begin says so too. */
const HTML = `<!doctype html><script type="module">
  import("/page.js").catch((error) =>
    fetch("${ROUTES.answer}", { method: "POST", body: JSON.stringify({ error: String(error) }) }));
</script>`;

/** Why no browser can start here; undefined where one can. */
async function browserRefusal(): Promise<string | undefined> {
  try {
    const child = Bun.spawn([await browserPath(), "--version"], { stdout: "ignore", stderr: "pipe" });
    const said = await new Response(child.stderr).text();
    return (await child.exited) === 0 ? undefined : said.trim().split("\n")[0];
  } catch (error) {
    return String(error);
  }
}

/** The first and the last case of each op: a page is to show that it can, conformance.test.ts that all is right. */
function chosenCases(): Case[] {
  const byOp = Map.groupBy(runnableCases(), ({ name }) => name.split(":")[0]);
  const chosen = [...byOp.values()].flatMap((cases) => [cases[0]!, cases.at(-1)!]); // a group has one at least
  return [...new Set(chosen)];
}

/** Opens a page that runs them; what it posts, until it is done. */
async function answersOfPage(names: readonly string[]): Promise<PageAnswer[]> {
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, "page.ts")],
    target: "browser",
  });
  const script = await built.outputs[0]!.text(); // a failed build throws
  const seeds = Object.fromEntries(conformanceCases().map((each) => [each.name, Bun.hash.crc32(each.name)]));
  const answers: PageAnswer[] = [];
  const end = Promise.withResolvers<void>();
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === ROUTES.cases) return Response.json({ names, seeds } satisfies PageWork);
      if (pathname === "/page.js") return new Response(script, { headers: { "content-type": "text/javascript" } });
      if (pathname !== ROUTES.answer) {
        return new Response(HTML, { headers: { "content-type": "text/html" } });
      }
      const answer = (await request.json()) as PageAnswer; // from our own page
      if ("name" in answer) answers.push(answer);
      else if ("error" in answer) end.reject(new Error(`the page: ${answer.error}`));
      else end.resolve();
      return new Response();
    },
  });
  const profile = await mkdtemp(join(tmpdir(), "hearth-test-profile-"));
  const child = Bun.spawn([await browserPath(), ...FLAGS, `--user-data-dir=${profile}`, server.url.href], {
    stdio: ["ignore", "ignore", "ignore"],
    onExit: (_, code, signal) => end.reject(new Error(`the browser ended: ${code ?? signal}`)),
  });
  try {
    await end.promise;
    return answers;
  } finally {
    child.kill("SIGKILL");
    await child.exited;
    await rm(profile, { recursive: true, force: true });
  }
}

const refusal = await browserRefusal();
const name = "in a page of a headless browser the kernels agree with the reference";

test.skipIf(refusal !== undefined)(
  refusal === undefined ? name : `${name} (${refusal})`,
  async () => {
    const cases = chosenCases();
    expect(cases.length).toBeGreaterThan(20);
    const answers = await answersOfPage(cases.map((each) => each.name));
    const byName = new Map(answers.map((answer) => ["name" in answer ? answer.name : "", answer]));
    for (const each of cases) {
      const answer = byName.get(each.name);
      const runs = answer && "logits" in answer ? answer.logits : [];
      const expected = await runCase(cpuBackend, each);
      expect(runs.length).toBe(expected.length);
      for (const [i, logits] of runs.entries()) expectClose(Float32Array.from(logits), expected[i]!, each.tolerance);
    }
  },
  120_000,
);
