/** Rate limits of requests; through a real socket. */
import { expect, test } from "bun:test";
import { TOKEN } from "../gateway/hooks/ingress/fixtures.ts";
import { type Api, json, refusal, startHooks } from "./hooks-api.ts";

const BEARER = { authorization: `Bearer ${TOKEN}` };

const mapping = (path: string, more = {}) => ({
  id: path,
  match: { path },
  action: "wake",
  textTemplate: "x",
  ...more,
});
const remaining = (response: Response): string | null => response.headers.get("ratelimit-remaining");

test("hooks.rateLimit: after the burst, all endpoints answer 429 with Retry-After and RateLimit headers", async () => {
  const api = await startHooks({ hooks: { rateLimit: { perMinute: 30, burst: 3 }, mappings: [mapping("ci")] } });
  const first = await api.post("/hooks/wake", { text: "a" });
  const names = ["policy", "limit", "remaining", "reset"].map((name) => first.headers.get(`ratelimit-${name}`));
  expect([first.status, ...names]).toEqual([200, "30;w=60;burst=3", "3", "2", "2"]);
  const bad = await api.post("/hooks/agent", {}); // a bad request counts
  expect([bad.status, remaining(bad)]).toEqual([400, "1"]);
  expect(remaining(await api.post("/hooks/ci", {}))).toBe("0");
  for (const path of ["wake", "agent", "ci"]) {
    const response = await api.post(`/hooks/${path}`, { text: "a", message: "a" });
    expect([response.headers.get("retry-after"), remaining(response)]).toEqual(["2", "0"]);
    expect(await refusal(response)).toEqual([429, "rate_limited"]);
  }
  expect(await api.world.actions()).toHaveLength(2);
  api.world.nowMs += 2000;
  expect((await api.post("/hooks/wake", { text: "b" })).status).toBe(200);
});

test("a mapping's rateLimit applies to that mapping only; without a limit there are no RateLimit headers", async () => {
  const mappings = [mapping("loud", { rateLimit: { perSecond: 1 } }), mapping("quiet")];
  const api = await startHooks({ hooks: { mappings } });
  expect(remaining(await api.post("/hooks/loud", {}))).toBe("0");
  expect(await refusal(await api.post("/hooks/loud", {}))).toEqual([429, "rate_limited"]);
  const quiet = await api.post("/hooks/quiet", {});
  expect([quiet.status, remaining(quiet)]).toEqual([200, null]);
});

test("a request that a mapping's own limit refuses does not count against hooks.rateLimit", async () => {
  const mappings = [mapping("loud", { rateLimit: { perSecond: 1 } })];
  const api = await startHooks({ hooks: { rateLimit: { perMinute: 5 }, mappings } });
  for (let i = 0; i < 20; i++) await api.post("/hooks/loud", {});
  expect(remaining(await api.post("/hooks/wake", { text: "a" }))).toBe("3");
});

test("a request with a wrong token does not count against a limit", async () => {
  const api = await startHooks({ hooks: { rateLimit: { perMinute: 2 } } });
  const guess = (each: Api, i: number) =>
    each.send("/hooks/wake", { text: "a" }, { headers: { "x-gateway-token": `${i}` } });
  for (let i = 0; i < 10; i++) expect((await guess(api, i)).status).toBe(401);
  expect((await api.post("/hooks/wake", { text: "a" })).status).toBe(200);
});

test("a changed rateLimit applies from the next request", async () => {
  const api = await startHooks({ hooks: { rateLimit: { perMinute: 1 } } });
  await api.post("/hooks/wake", { text: "a" });
  expect((await api.post("/hooks/wake", { text: "a" })).status).toBe(429);
  const { hooks, ...rest } = api.world.settings;
  api.world.settings = { hooks: { ...hooks, rateLimit: { perMinute: 60 } }, ...rest };
  expect(remaining(await api.post("/hooks/wake", { text: "a" }))).toBe("59");
});

test("GET {hooks.path}/runs/:id and its events: have the same limit, counted separately from webhooks", async () => {
  const api = await startHooks({ hooks: { rateLimit: { perMinute: 30, burst: 2 } } });
  const sent = await api.post("/hooks/wake", { text: "a" });
  const { runId } = await json(sent);
  const ask = (path: string) => api.send(`/hooks/runs/${path}`, undefined, { method: "GET", headers: BEARER });
  const first = await ask(runId);
  expect([sent, first].map(remaining)).toEqual(["1", "1"]);
  expect((await ask("nobody")).status).toBe(404); // a question too
  for (const path of [runId, `${runId}/events`]) {
    const response = await ask(path);
    expect(response.headers.get("retry-after")).toBe("2");
    expect(await refusal(response)).toEqual([429, "rate_limited"]);
  }
  expect((await api.post("/hooks/wake", { text: "b" })).status).toBe(200);
  api.world.nowMs += 2000;
  const events = await ask(`${runId}/events`);
  expect([events.status, remaining(events)]).toEqual([200, "0"]);
  await events.body?.cancel();
});
