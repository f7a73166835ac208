/** A server that other machines can reach: its warning at startup, and the requests that it accepts. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, startHearth } from "./hearth.ts";
import { rawRequest } from "./raw-request.ts";

setDefaultTimeout(120_000);

const homes: string[] = [];
afterEach(() => {
  for (const home of homes.splice(0)) rmSync(home, { recursive: true, force: true });
});

const WARNING = "set HEARTH_API_KEYS, or listen on HEARTH_HOST=127.0.0.1";
const TOKEN = "a-hook-token-of-32-characters-xx";

test("a server without keys on all addresses warns, and takes only webhooks under any host name", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-exposed-"));
  homes.push(home);
  mkdirSync(join(home, ".hearth"));
  const root = {
    hooks: { enabled: true, token: TOKEN },
    agents: { defaults: { heartbeat: { every: 0, target: "none" } } },
  };
  writeFileSync(join(home, ".hearth", "hearth.json5"), JSON.stringify(root), { mode: 0o600 });
  const hearth = await startHearth({ home, isSteady: true, env: { HEARTH_HOST: "0.0.0.0:0" } });
  try {
    const warnings = (): number => hearth.log().filter((line) => line.includes(WARNING)).length;
    expect(await eventually(() => warnings() > 0)).toBe(true);
    const port = Number(new URL(hearth.url).port);
    const headers = { host: "hooks.example.org", authorization: `Bearer ${TOKEN}` };
    const wake = { method: "POST", target: "/hooks/wake", headers, body: '{"text":"hello"}' };
    expect((await rawRequest(port, wake)).status).toBe(200);
    expect((await rawRequest(port, { target: "/api/tags", headers })).status).toBe(403);
    expect((await rawRequest(port, { target: "/hooks-admin/status", headers })).status).toBe(403);
    expect((await rawRequest(port, { target: "/api/tags" })).status).toBe(200);
    expect(warnings()).toBe(1);
  } finally {
    await hearth.stop();
  }
});

test("a server with keys, or on loopback, does not warn", async () => {
  for (const env of [{ HEARTH_HOST: "0.0.0.0:0", HEARTH_API_KEYS: "alpha" }, { HEARTH_HOST: "localhost:0" }]) {
    const hearth = await startHearth({ env });
    expect((await fetch(`${hearth.url}/nowhere`)).status).toBeGreaterThanOrEqual(400);
    expect(await eventually(() => hearth.log().some((line) => line.includes("/nowhere")))).toBe(true);
    expect(hearth.log().filter((line) => line.includes(WARNING))).toEqual([]); // earlier than that line
    await hearth.stop();
  }
});
