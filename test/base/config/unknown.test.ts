import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../../../src/base/config/config.ts";
import { SETTINGS } from "../../../src/base/config/settings.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-unknown-"));
afterAll(() => rmSync(folder, { recursive: true }));

const warningsOf = (env: Record<string, string>, flags: Record<string, string> = {}): readonly string[] =>
  readConfig({ env, flags, home: "/nowhere" }).warnings;

test.each([
  ["HEARTH_KVCACHE_TYPE", "; did you mean HEARTH_KV_CACHE_TYPE?"],
  ["HEARTH_NUM_PARALEL", "; did you mean HEARTH_NUM_PARALLEL?"],
  ["HEARTH_MODEL", "; did you mean HEARTH_MODELS?"],
  ["HEARTH_PORT", "; did you mean HEARTH_HOST?"],
  ["HEARTH_APIKEY", "; did you mean HEARTH_API_KEY?"],
  ["HEARTH_FLASH_ATTENTION", ""],
])("the unknown variable %s is named without its value", (name, near) => {
  expect(warningsOf({ [name]: "8080" })).toEqual([`${name} is not a setting and has no effect${near}`]);
});

test("variables that are read elsewhere, are empty or have another prefix are not named", () => {
  const settings = Object.values(SETTINGS).flatMap(({ env }) => env as readonly string[]);
  expect(settings.length).toBeGreaterThan(25);
  expect(warningsOf(Object.fromEntries(settings.map((name) => [name, ""])))).toEqual([]);
  expect(warningsOf({ HEARTH_KEEP_ALIVE: "1m", HEARTH_HOME: "/h", HEARTH_API_KEY: "k" })).toEqual([]);
  expect(warningsOf({ HEARTH_KEEPALIVE: " ", OTHER_NAME: "x", HEARTHSTONE: "x" })).toEqual([]);
  expect(warningsOf({ HEARTH_GATEWAY_TOKEN: "t", HEARTH_HOOK_SECRET: "s", HEARTH_TEST_SEED: "1" })).toEqual([]);
});

test("variables that Kubernetes sets for a service called hearth are not named", () => {
  const service = {
    HEARTH_SERVICE_HOST: "10.0.0.1",
    HEARTH_SERVICE_PORT: "11434",
    HEARTH_SERVICE_PORT_HTTP: "11434",
    HEARTH_PORT: "tcp://10.0.0.1:11434",
    HEARTH_PORT_11434_TCP: "tcp://10.0.0.1:11434",
    HEARTH_PORT_11434_TCP_PROTO: "tcp",
    HEARTH_HOOKS_SERVICE_HOST: "10.0.0.2",
    HEARTH_HOOKS_PORT: "tcp://10.0.0.2:11435",
    HEARTH_HOOKS_PORT_11435_TCP_ADDR: "10.0.0.2",
  };
  expect(warningsOf(service)).toEqual([]);
});

test("a variable that the configuration file refers to is not named", () => {
  const path = join(folder, "hearth.json5");
  writeFileSync(path, "{ hooks: { token: '${HEARTH_HOOKS_TOKEN}' }, maxQueue: 3 }");
  const env = { HEARTH_HOOKS_TOKEN: "a-token-of-32-characters-xxxxxxx" };
  expect(warningsOf(env, { config: path })).toEqual([]);
  expect(warningsOf(env)).toHaveLength(1);
});
