/** Clients' requests about a cloud and accounts, the version that they compare, and the Retry-After of 503. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await makeHarness();
});
afterAll(() => harness.close());

const json = async (response: Response): Promise<any> => response.json();

test("/api/version gives the API's version, which satisfies the least of each client, and Hearth's own", async () => {
  const { version, hearth } = await json(await harness.call("GET", "/api/version"));
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  for (const least of ["0.6.4", "0.13.4", "0.14.2"]) expect(Bun.semver.order(version, least)).toBe(1);
  expect(hearth).toBe("1.2.3");
  expect((await json(await harness.call("GET", "/health"))).version).toBe("1.2.3");
});

test("cloud endpoints report the cloud as disabled, recommend no models and refuse accounts with 401", async () => {
  expect(await json(await harness.call("GET", "/api/status"))).toEqual({ cloud: { disabled: true, source: "env" } });
  expect(await json(await harness.call("GET", "/api/experimental/model-recommendations"))).toEqual({
    recommendations: [],
  });
  for (const [method, path, status] of [
    ["POST", "/api/me", 401],
    ["POST", "/api/signout", 401],
    ["DELETE", "/api/user/keys/abc", 401],
  ] as const) {
    const response = await harness.call(method, path);
    expect([path, response.status]).toEqual([path, status]);
    expect(await response.json()).toEqual({ error: expect.any(String) });
  }
});

test.each([
  ["web_search", "web search"],
  ["web_fetch", "web fetch"],
])("%s without a body is 400, and with one it is refused", async (route, what) => {
  const path = `/api/experimental/${route}`;
  const empty = await harness.call("POST", path);
  expect([empty.status, await json(empty)]).toEqual([400, { error: "missing request body" }]);
  const refused = await harness.call("POST", path, { query: "x" });
  expect([refused.status, await json(refused)]).toEqual([
    403,
    { error: `ollama cloud is disabled: ${what} is unavailable` },
  ]);
});

test("show gives GitHub Copilot the requested name as the base name, and other clients the file's", async () => {
  const show = async (agent: string): Promise<any> => {
    const body = JSON.stringify({ model: "M" });
    const request = new Request("http://127.0.0.1/api/show", {
      method: "POST",
      body,
      headers: { "user-agent": agent },
    });
    return (await json(await harness.app.handle(request))).model_info["general.basename"];
  };
  expect(await show("GitHubCopilotChat/0.1")).toBe("M");
  expect(await show("curl/8")).not.toBe("M");
});

test.each(["/api/generate", "/v1/completions", "/v1/messages"])(
  "503 of %s has a Retry-After header if the server is busy, and none if the file is broken",
  async (path) => {
    const fail = (error: AppError): void => {
      harness.runtime.script = async function* () {
        yield* [];
        throw error;
      };
    };
    const ask = () =>
      harness.post(path, { model: "m", prompt: "a", max_tokens: 3, messages: [{ role: "user", content: "a" }] });
    fail(new AppError("busy", "server busy"));
    const busy = await ask();
    expect([busy.status, busy.headers.get("retry-after")]).toEqual([503, "5"]);
    fail(new AppError("busy", "later", { retryAfterMs: 1500 }));
    expect((await ask()).headers.get("retry-after")).toBe("2");
    fail(new AppError("bad_file", "broken"));
    expect((await ask()).headers.has("retry-after")).toBe(false);
  },
);
