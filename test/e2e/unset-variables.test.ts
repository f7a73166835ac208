/** A configuration with unset variables: only commands that need their values fail. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { afterTest } from "../cleanups.ts";
import { runHearth } from "./hearth.ts";

/** A home with this configuration, and a server that reports the key of each request. */
function start(config: (url: string) => string): { home: string; file: string; url: string; keys: string[] } {
  const home = mkdtempSync(join(tmpdir(), "hearth-unset-"));
  afterTest(() => rmSync(home, { recursive: true, force: true }));
  const keys: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      keys.push(request.headers.get("authorization") ?? "");
      return Response.json({ models: [], nodes: [] });
    },
  });
  afterTest(() => server.stop(true));
  const url = `http://127.0.0.1:${server.port}`;
  mkdirSync(join(home, ".hearth"));
  const file = join(home, ".hearth", "hearth.json5");
  writeFileSync(file, config(url));
  return { home, file, url, keys };
}

const DATABASE = "database: { url: '${THE_DATABASE}' }, apiKeys: ['${THE_KEY}'], numParallel: '${THE_NUMBER}'";
const unset = (place: string, name: string) => `Error: ${place}: the environment variable ${name} is not set\n`;

test("client commands ignore unset variables in settings that only the server uses", async () => {
  const { home, keys } = start((url) => `{ host: '${url}', ${DATABASE}, gateway: { token: 'in-the-file' } }`);
  const run = (words: string[]) => runHearth(words, { home, env: { HEARTH_HOST: "" } }); // the value is in the file
  const [list, nodes] = await Promise.all([run(["list"]), run(["nodes", "--json"])]);
  expect([list.code, list.stderr]).toEqual([0, ""]);
  expect(nodes).toEqual({ code: 0, stdout: expect.stringContaining('"nodes": []'), stderr: "" });
  expect(keys).toContain("Bearer in-the-file");
}, 30_000);

test("an unset variable in the file is ignored if the environment overrides its setting", async () => {
  const config = () => `{ host: '\${THE_HOST}', ${DATABASE}, gateway: { token: '\${THE_TOKEN}' } }`;
  const { home, url, keys } = start(config);
  const env = { HEARTH_HOST: url, HEARTH_GATEWAY_TOKEN: "told" };
  expect(await runHearth(["nodes", "--json"], { home, env })).toMatchObject({ code: 0, stderr: "" });
  expect(keys).toEqual(["Bearer told"]);
}, 30_000);

test("a command that needs an unset variable fails and names its line", async () => {
  const { home, file } = start(
    (url) => `{\n host: '${url}',\n ${DATABASE},\n gateway: { token: '\${THE_TOKEN}' },\n hooks: {} }`,
  );
  const run = (words: string[], env = {}) => runHearth(words, { home, env });
  const [nodes, exported, served] = await Promise.all([
    run(["nodes"]),
    run(["gateway", "export", join(home, "x")], { THE_KEY: "k", THE_NUMBER: "2", THE_TOKEN: "t" }),
    run(["serve"]),
  ]);
  expect(nodes).toEqual({ code: 1, stdout: "", stderr: unset(`${file}:4: gateway.token`, "THE_TOKEN") });
  expect(exported).toEqual({ code: 1, stdout: "", stderr: unset(`${file}:3: database.url`, "THE_DATABASE") });
  expect([served.code, served.stderr]).toEqual([
    1,
    expect.stringContaining("the environment variable THE_DATABASE is"),
  ]);
}, 60_000);
