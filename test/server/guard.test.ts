import { afterEach, describe, expect, test } from "bun:test";
import { hostname as machineName } from "node:os";
import type { AppDeps } from "../../src/server/deps.ts";
import { makeHarness, type Harness } from "./harness.ts";

let open: Harness[] = [];
afterEach(async () => {
  await Promise.all(open.map((harness) => harness.close()));
  open = [];
});

async function caller(config: Partial<AppDeps["config"]> = {}) {
  const harness = await makeHarness(config);
  open.push(harness);
  return (headers: Record<string, string>, method = "GET", path = "/api/version") =>
    harness.call(method, path, undefined, headers);
}

describe("origins", () => {
  test.each([
    ["http://localhost", true],
    ["http://localhost:3000", true],
    ["https://127.0.0.1:8443", true],
    ["http://0.0.0.0", true],
    ["app://obsidian.md", true],
    ["tauri://localhost", true],
    ["vscode-webview://abc", true],
    ["http://evil.example", false],
    ["http://localhost.evil.example", false],
    ["http://localhost:3000.evil.example", true], // a star stands for any text, as it always did
    ["chrome-extension://abc", false],
    ["null", false],
  ])("%s is allowed: %p", async (origin, allowed) => {
    const response = await (await caller())({ origin });
    expect(response.status).toBe(allowed ? 200 : 403);
    expect(response.headers.get("access-control-allow-origin")).toBe(allowed ? origin : null);
    expect(response.headers.get("vary")).toBe(allowed ? "Origin" : null);
    if (!allowed) expect(await response.text()).toBe("");
  });

  test("can be added to, with one star each", async () => {
    const call = await caller({ origins: ["https://*.example.com", "chrome-extension://*"] });
    expect((await call({ origin: "https://a.example.com" })).status).toBe(200);
    expect((await call({ origin: "chrome-extension://abc" })).status).toBe(200);
    expect((await call({ origin: "https://example.com" })).status).toBe(403);
  });

  test("a star alone allows all", async () => {
    const response = await (await caller({ origins: ["*"] }))({ origin: "http://evil.example" });
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
  });

  test("the server's own origin is left alone, whatever its name", async () => {
    const call = await caller({ host: { hostname: "0.0.0.0", port: 0 } });
    const response = await call({ origin: "https://models.example", host: "models.example" });
    expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([200, null]);
  });

  test("a preflight is answered with what is allowed, on any path", async () => {
    const response = await (await caller())({ origin: "http://localhost" }, "OPTIONS", "/api/chat");
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(response.headers.get("access-control-allow-methods")).toBe("GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS");
    expect(response.headers.get("access-control-allow-headers")).toMatch(
      /^Authorization,Content-Type,.*X-Api-Key,.*X-Stainless-Helper,.*X-Stainless-Retry-Count/,
    );
    expect(response.headers.get("access-control-max-age")).toBe("43200");
  });

  test("a page may read the id of its request, and when to ask again", async () => {
    const call = await caller();
    for (const path of ["/v1/models", "/v1/nothing"]) {
      const response = await call({ origin: "http://localhost" }, "GET", path);
      const exposed = response.headers.get("access-control-expose-headers")?.split(",");
      expect(exposed).toEqual(expect.arrayContaining(["Request-Id", "Retry-After", "X-Request-Id", "ETag"]));
    }
    expect((await call({})).headers.get("access-control-expose-headers")).toBeNull();
  });

  test("a refused origin gets 403 for preflights and unknown paths too", async () => {
    const call = await caller();
    expect((await call({ origin: "http://evil.example" }, "OPTIONS")).status).toBe(403);
    expect((await call({ origin: "http://evil.example" }, "GET", "/nothing")).status).toBe(403);
  });

  test("an answer to an allowed origin carries the headers also when it is an error", async () => {
    const response = await (await caller())({ origin: "http://localhost" }, "GET", "/nothing");
    expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([404, "http://localhost"]);
  });
});

describe("the Host header on a loopback address", () => {
  test.each([
    ["localhost:11434", true],
    ["LOCALHOST", true],
    ["127.0.0.1:11434", true],
    ["[::1]:11434", true],
    ["10.1.2.3", true],
    ["172.31.0.1:80", true],
    ["192.168.1.9:80", true],
    ["[fd00::1]", true],
    ["0.0.0.0:1", true],
    ["box.local", true],
    ["host.docker.internal:11434", true],
    ["app.localhost", true],
    [machineName(), true],
    ["evil.example", false],
    ["localhost.evil.example", false],
    ["93.184.216.34", false],
    ["172.32.0.1", false],
    ["evil.example:11434", false],
  ])("%s passes: %p", async (host, passes) => {
    const response = await (await caller())({ host });
    expect([response.status, await response.text()]).toEqual(
      passes ? [200, '{"version":"0.33.0","hearth":"1.2.3"}'] : [403, ""],
    );
  });

  test("is not looked at when others can reach the server anyway", async () => {
    const call = await caller({ host: { hostname: "0.0.0.0", port: 0 } });
    expect((await call({ host: "models.example" })).status).toBe(200);
  });

  test("an OPTIONS request to one of our names is answered at once", async () => {
    expect((await (await caller())({ host: "localhost" }, "OPTIONS")).status).toBe(204);
  });
});

describe("keys", () => {
  const keys = { apiKeys: ["alpha", "beta"] };

  test.each([
    [{}, 401],
    [{ authorization: "Bearer gamma" }, 401],
    [{ authorization: "alpha" }, 401],
    [{ authorization: "Basic alpha" }, 401],
    [{ authorization: "Bearer alpha" }, 200],
    [{ authorization: "bearer beta" }, 200],
  ])("%j gets %d", async (headers, status) => {
    const response = await (await caller(keys))(headers as Record<string, string>);
    expect(response.status).toBe(status);
    if (status === 200) return;
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(await response.json()).toEqual({ error: "unauthorized" });
  });

  test("are asked for under every spelling of a path that reaches a route", async () => {
    const call = await caller(keys);
    for (const path of [
      "/api/version",
      "/api/version/",
      "/%61pi/version",
      "//api/version",
      "/api/../api/version",
      "/API/version",
    ]) {
      expect([path, [401, 404].includes((await call({}, "GET", path)).status)]).toEqual([path, true]);
    }
  });

  test("cannot be avoided by a short host name, which routes as well as a long one", async () => {
    const harness = await makeHarness({ ...keys, host: { hostname: "0.0.0.0", port: 0 } });
    open.push(harness);
    const status = async (url: string, headers = {}) =>
      (await harness.app.handle(new Request(url, { headers }))).status;
    expect(await status("http://a/xx/api/version")).toBe(404);
    expect(await status("http://nas/api/version")).toBe(401);
    expect(await status("http://nas/api/version", { authorization: "Bearer alpha" })).toBe(200);
  });

  test("are asked for by everything under /api and /v1, and by /metrics", async () => {
    const call = await caller(keys);
    for (const path of ["/api/tags", "/api/nothing", "/v1/models", "/v1/chat/completions", "/metrics"]) {
      expect([path, (await call({}, "GET", path)).status]).toEqual([path, 401]);
    }
  });

  test("have names, which the log shows instead of them", async () => {
    const harness = await makeHarness({ apiKeys: ["laptop:alpha", "beta", "ci:with:colon"] });
    open.push(harness);
    const keyOf = async (key: string): Promise<unknown> => {
      await harness.call("GET", "/api/version", undefined, { authorization: `Bearer ${key}` });
      return harness.logs.at(-1)?.["key"];
    };
    expect(await keyOf("alpha")).toBe("laptop");
    expect(await keyOf("beta")).toBe("key2");
    expect(await keyOf("with:colon")).toBe("ci");
    expect(await keyOf("laptop:alpha")).toBeUndefined();
    expect(JSON.stringify(harness.logs)).not.toMatch(/alpha|beta|with:colon/);
  });

  test("are not asked for by the root, by health and by preflights", async () => {
    const call = await caller(keys);
    expect((await call({}, "GET", "/")).status).toBe(200);
    expect((await call({}, "GET", "/health")).status).toBe(200);
    expect((await call({ origin: "http://localhost" }, "OPTIONS", "/api/chat")).status).toBe(204);
  });
});
