/** Behind nginx with its default settings, except Hearth's address. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { NEVER_ENDING } from "../clients/target.ts";
import { eventually, ndjson, startHearth, type Hearth } from "./hearth.ts";
import { hasNginx, startNginx } from "./nginx.ts";

describe.skipIf(!hasNginx)("nginx with its defaults", () => {
  let hearth: Hearth;
  let nginx: Awaited<ReturnType<typeof startNginx>>;
  beforeAll(async () => {
    hearth = await startHearth();
    nginx = await startNginx(`location / { proxy_pass ${hearth.url}; }`);
  }, 60_000);
  afterAll(async () => {
    await nginx.stop();
    await hearth.stop();
  });

  /** A long answer. */
  const askLong = (url: string, path: string, signal: AbortSignal): Promise<Response> => {
    const options = { num_predict: -1, seed: 6 };
    const messages = [{ role: "user", content: "Go on for ever." }];
    const schema = { type: "json_schema", json_schema: { name: "node", schema: NEVER_ENDING } };
    const openai = { max_tokens: 100_000, response_format: schema };
    const body = {
      model: "hearth",
      messages,
      stream: true,
      ...(path === "/api/chat" ? { options, format: NEVER_ENDING } : openai),
    };
    return fetch(url + path, { method: "POST", signal, body: JSON.stringify(body) });
  };
  const running = async (): Promise<number> => (await hearth.activity()).running;
  const atNginx = (): string => `http://127.0.0.1:${nginx.port}`;

  test.each(["/api/chat", "/v1/chat/completions"])(
    "ends an answer of %s if the client disconnects, and is asked not to buffer it",
    async (path) => {
      const direct = new AbortController();
      expect((await askLong(hearth.url, path, direct.signal)).headers.get("x-accel-buffering")).toBe("no");
      direct.abort();
      expect(await eventually(async () => (await running()) === 0)).toBe(true);
      const leaving = new AbortController();
      const response = await askLong(atNginx(), path, leaving.signal);
      const reader = response.body!.getReader();
      await reader.read();
      const runners = await hearth.runnerPids();
      for (const pid of runners) process.kill(pid, "SIGSTOP"); // the answer does not end by itself
      expect(await running()).toBe(1);
      leaving.abort();
      await reader.closed.catch(() => {});
      expect(await eventually(async () => (await running()) === 0)).toBe(true);
      for (const pid of runners) process.kill(pid, "SIGCONT");
    },
    120_000,
  );

  test("passes pieces as they are made", async () => {
    // a buffering nginx forwards pages of 4 kB and the end; this answer has neither
    using registry = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: () => new Promise(() => {}) });
    const model = `http://127.0.0.1:${registry.port}/library/slow`;
    const body = JSON.stringify({ model, insecure: true });
    const leaving = new AbortController();
    const response = await fetch(`${atNginx()}/api/pull`, { method: "POST", body, signal: leaving.signal });
    expect((await ndjson(response).next()).value).toEqual({ status: "pulling manifest" });
    leaving.abort();
  }, 60_000);
});
