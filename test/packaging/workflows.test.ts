/** The workflows of hosted CI: no hosted run has shown them yet, so their form and the files they name are checked. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "../..");

interface Step {
  readonly run?: string;
  readonly uses?: string;
}

interface Workflow {
  readonly on: {
    readonly workflow_dispatch?: { readonly inputs: { readonly publish: { readonly default: boolean } } };
  };
  readonly jobs: Readonly<
    Record<string, { readonly if?: string; readonly needs?: string; readonly steps: readonly Step[] }>
  >;
}

const read = (name: string): Workflow =>
  Bun.YAML.parse(readFileSync(join(ROOT, ".github/workflows", name), "utf8")) as Workflow;

test("a release starts by hand, and publishes only if requested", () => {
  const { on, jobs } = read("release.yml");
  expect(Object.keys(on)).toEqual(["workflow_dispatch"]);
  expect(on.workflow_dispatch!.inputs.publish.default).toBe(false);
  expect(jobs["publish"]!.if).toBe("inputs.publish");
  const others = Object.entries(jobs).filter(([name]) => name !== "publish");
  expect(JSON.stringify(others)).not.toMatch(/npm publish|gh release|contents: write/);
  expect(Object.values(jobs).map(({ needs }) => needs)).toEqual([undefined, "test", "build", "install"]);
});

test.each(["release.yml", "linux.yml", "elsewhere.yml"])(
  "%s: every command parses and names existing files",
  (name) => {
    const { jobs } = read(name);
    const commands = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
    expect(commands.length).toBeGreaterThan(1);
    for (const command of commands.filter((text) => !text.includes("Start-Process"))) {
      expect(Bun.spawnSync(["bash", "-n"], { stdin: Buffer.from(command) }).stderr.toString()).toBe("");
      for (const [path] of command.matchAll(/(?<![\w/.-])(?:packaging|test|\.ci)\/[\w./-]+/g))
        expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
    }
  },
);
