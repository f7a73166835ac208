import { afterEach, describe, expect, test } from "bun:test";
import { hostname as machineName } from "node:os";
import type { AppDeps } from "../../src/server/routes/deps.ts";
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
    ["http://[::1]:8080", true],
    ["http://tauri.localhost", true],
    ["http://app.localhost:3000", true],
    ["http://localhost:3000.evil.example", false],
    ["http://localhost:80@evil.example", false],
    ["http://localhost/x", false],
    ["http://localhost, http://evil.example", false],
    ["app://x, http://evil.example", false],
    ["http://evillocalhost", false],
    ["http://[::ffff:127.0.0.1]", false],
    ["chrome-extension://abc", false],
    ["null", false],
  ])("%s is allowed: %p", async (origin, allowed) => {
    const response = await (await caller())({ origin });
    expect(response.status).toBe(allowed ? 200 : 403);
    expect(response.headers.get("access-control-allow-origin")).toBe(allowed ? origin : null);
    expect(response.headers.get("vary")).toBe(allowed ? "Origin" : null);
    if (!allowed) expect(await response.json()).toEqual({ error: expect.stringContaining(`'${origin}'`) });
  });

  test("a refusal names the origin and the setting, in the shape of the route's API", async () => {
    const call = await caller();
    const message =
      "pages of origin 'https://a.example' may not call this server: HEARTH_ORIGINS=https://a.example allows it";
    const from = { origin: "https://a.example" };
    expect(await (await call(from)).json()).toEqual({ error: message });
    expect(await (await call(from, "POST", "/v1/chat/completions")).json()).toMatchObject({ error: { message } });
    expect(await (await call(from, "POST", "/v1/messages")).json()).toMatchObject({
      error: { type: "permission_error", message },
    });
    const long = await (await call({ origin: `https://${"a".repeat(5000)}` })).text();
    expect(long.length).toBeLessThan(1000);
  });

  test("may be configured with one star each", async () => {
    const call = await caller({ origins: ["https://*.example.com", "chrome-extension://*"] });
    expect((await call({ origin: "https://a.example.com" })).status).toBe(200);
    expect((await call({ origin: "chrome-extension://abc" })).status).toBe(200);
    expect((await call({ origin: "https://example.com" })).status).toBe(403);
  });

  test("a single star allows all origins", async () => {
    const response = await (await caller({ origins: ["*"] }))({ origin: "http://evil.example" });
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
  });

  test("the server's own origin passes under any of its names, without CORS headers", async () => {
    const call = await caller({ host: { hostname: "0.0.0.0", port: 0 }, hosts: ["models.example"] });
    const response = await call({ origin: "https://models.example", host: "models.example" });
    expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([200, null]);
  });

  test("a preflight allows the methods of all routes and the headers that it names, on any path", async () => {
    const call = await caller();
    for (const [asked, allowed] of [
      ["authorization,openai-organization,traceparent,x-stainless-os, x-title", /^Authorization,.*,traceparent,/],
      [undefined, /^Authorization,Content-Type,.*,X-Stainless-Timeout$/],
      ["x-a,\tb c", /,X-Stainless-Timeout$/],
      ["x-a,", /,X-Stainless-Timeout$/],
    ] as const) {
      const headers = { origin: "http://localhost", ...(asked ? { "access-control-request-headers": asked } : {}) };
      const response = await call(headers, "OPTIONS", "/api/chat");
      expect([response.status, await response.text()]).toEqual([204, ""]);
      expect(response.headers.get("access-control-allow-methods")).toBe("GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS");
      expect(response.headers.get("access-control-allow-headers")).toMatch(allowed);
      expect(response.headers.get("access-control-max-age")).toBe("43200");
    }
  });

  test("a page may read the headers with the request's id, the ETag and the time to retry", async () => {
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

  test("an error for an allowed origin has CORS headers too", async () => {
    const response = await (await caller())({ origin: "http://localhost" }, "GET", "/nothing");
    expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([404, "http://localhost"]);
  });
});

describe("the Host header", () => {
  const OK = { version: "0.33.0", hearth: "1.2.3" };
  const [machine = ""] = machineName().split(".");

  /** [header, accepted on a loopback address, accepted on another] */
  test.each([
    ["localhost:11434", true, true],
    ["LOCALHOST", true, true],
    ["localhost.:80", true, true],
    ["evil.example.", false, false],
    ["127.0.0.1:11434", true, true],
    ["[::1]:11434", true, true],
    ["10.1.2.3", true, true],
    ["172.31.0.1:80", true, true],
    ["192.168.1.9:80", true, true],
    ["[fd00::1]", true, true],
    ["0.0.0.0:1", true, true],
    ["93.184.216.34", false, true],
    ["172.32.0.1", false, true],
    ["[2001:db8::1]:80", false, true],
    ["host.docker.internal:11434", true, true],
    ["app.localhost", true, true],
    [machineName(), true, true],
    [machine, true, true],
    [`${machine}.local:80`, true, true],
    ["box-of-others.local", false, false],
    ["evil.internal", false, false],
    ["evil.example", false, false],
    ["evil.example:11434", false, false],
    ["localhost.evil.example", false, false],
  ])("%s passes on loopback: %p, and elsewhere: %p", async (host, onLoopback, elsewhere) => {
    const ask = async (hostname: string): Promise<[number, unknown]> => {
      const response = await (await caller({ host: { hostname, port: 0 } }))({ host });
      return [response.status, await response.json()];
    };
    const refused = [403, { error: expect.stringContaining(`Host '${host}' is not a name of this server`) }];
    for (const hostname of ["127.0.0.1", "::1", "localhost"]) {
      expect([hostname, await ask(hostname)]).toEqual([hostname, onLoopback ? [200, OK] : refused] as never);
    }
    for (const hostname of ["0.0.0.0", "::", "192.168.7.7", "127.evil.example"]) {
      expect([hostname, await ask(hostname)]).toEqual([hostname, elsewhere ? [200, OK] : refused] as never);
    }
  });

  test("may be a configured name, the name of a configured origin, or the name that the server listens on", async () => {
    const passes = async (host: string, config: Partial<AppDeps["config"]>): Promise<boolean> =>
      (await (await caller(config))({ host })).status === 200;
    const hosts = ["models.example", "*.svc.cluster.local"];
    expect(await passes("Models.Example:80", { hosts })).toBe(true);
    expect(await passes("hearth.team.svc.cluster.local", { hosts })).toBe(true);
    expect(await passes("svc.cluster.local", { hosts })).toBe(false);
    expect(await passes("evilsvc.cluster.local", { hosts })).toBe(false);
    expect(await passes("a.models.example", { hosts })).toBe(false);
    expect(await passes("models.example.:80", { hosts })).toBe(true);
    expect(await passes("models.example..", { hosts })).toBe(false);
    expect(await passes("anything.example", { hosts: ["*"] })).toBe(true);
    expect(await passes("any, thing", { hosts: ["*"] })).toBe(false);
    const origins = ["https://models.example", "https://*.pages.example", "https://x.example:8443"];
    expect(await passes("models.example", { origins })).toBe(true);
    expect(await passes("models.example:80", { origins })).toBe(true);
    expect(await passes("a.pages.example", { origins })).toBe(true);
    expect(await passes("x.example:8443", { origins })).toBe(true);
    for (const host of ["x.example", "x.example:9"]) expect(await passes(host, { origins })).toBe(true);
    expect(await passes("y.example", { origins: ["http://y.example:*"] })).toBe(true);
    expect(await passes("x.example:8443.evil", { origins })).toBe(false);
    expect(await passes("models.example.evil", { origins })).toBe(false);
    expect(await passes("abc", { origins: ["chrome-extension://abc"] })).toBe(false);
    expect(await passes("nas.home.arpa", { host: { hostname: "NAS.home.arpa", port: 0 } })).toBe(true);
  });

  test("is not checked if the server has keys, since a page that rebinds a name has no key", async () => {
    const call = await caller({ apiKeys: ["alpha"] });
    expect((await call({ host: "evil.example" })).status).toBe(401);
    expect((await call({ host: "evil.example", authorization: "Bearer alpha" })).status).toBe(200);
  });

  test("the error of a refused host says how to allow it", async () => {
    expect(await (await (await caller())({ host: "a.example:80" })).json()).toEqual({
      error:
        "Host 'a.example:80' is not a name of this server: HEARTH_HOSTS=a.example allows it, and with HEARTH_API_KEYS any name will do",
    });
  });

  test("an OPTIONS request to one of the server's names is answered at once", async () => {
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
  ])("the headers %j get %d", async (headers, status) => {
    const response = await (await caller(keys))(headers as Record<string, string>);
    expect(response.status).toBe(status);
    if (status === 200) return;
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(await response.json()).toEqual({ error: "unauthorized" });
  });

  test("are required under every spelling of a path that reaches a route", async () => {
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

  test("are required under a short host name too", async () => {
    const harness = await makeHarness({ ...keys, host: { hostname: "0.0.0.0", port: 0 } });
    open.push(harness);
    const status = async (url: string, headers = {}) =>
      (await harness.app.handle(new Request(url, { headers }))).status;
    expect(await status("http://a/xx/api/version")).toBe(404);
    expect(await status("http://nas/api/version")).toBe(401);
    expect(await status("http://nas/api/version", { authorization: "Bearer alpha" })).toBe(200);
  });

  test("are required by every path under /api and /v1, and by /metrics", async () => {
    const call = await caller(keys);
    for (const path of ["/api/tags", "/api/nothing", "/v1/models", "/v1/chat/completions", "/metrics"]) {
      expect([path, (await call({}, "GET", path)).status]).toEqual([path, 401]);
    }
  });

  test("have names, which the log shows instead of the keys", async () => {
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

  test("are not required by the root, health and preflights", async () => {
    const call = await caller(keys);
    expect((await call({}, "GET", "/")).status).toBe(200);
    expect((await call({}, "GET", "/health")).status).toBe(200);
    expect((await call({ origin: "http://localhost" }, "OPTIONS", "/api/chat")).status).toBe(204);
  });
});
