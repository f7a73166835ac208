/** Behind nginx with its default settings, except Hearth's address. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eventually, startHearth, type Hearth } from "./hearth.ts";
import { hasNginx, startNginx } from "./nginx.ts";

/** The token that ends an answer of the embedded model. */
const END = 4095;

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
  const askLong = (path: string, signal: AbortSignal): Promise<Response> => {
    const options = { temperature: 100, top_k: 0, top_p: 1, num_predict: 3000, seed: 6 };
    const messages = [{ role: "user", content: "Go on for ever." }];
    const openai = { temperature: 2, max_tokens: 3000, logit_bias: { [END]: -100 } };
    const body = JSON.stringify({ model: "hearth", messages, options, stream: true, ...openai });
    return fetch(`http://127.0.0.1:${nginx.port}${path}`, { method: "POST", signal, body });
  };
  const running = async (): Promise<number> =>
    Number(/^hearth_requests_running (\d+)/m.exec(await (await fetch(`${hearth.url}/metrics`)).text())?.[1]);

  test.each(["/api/chat", "/v1/chat/completions"])(
    "passes pieces of %s as they are made, and ends the answer if the client disconnects",
    async (path) => {
      const leaving = new AbortController();
      const response = await askLong(path, leaving.signal);
      const reader = response.body!.getReader();
      // a buffering nginx forwards pages of 4 kB and the end; pieces may be joined under load
      let smallest = Infinity;
      for (let i = 0; i < 20; i++) smallest = Math.min(smallest, (await reader.read()).value!.length);
      expect(smallest).toBeLessThan(2000);
      expect(await running()).toBe(1);
      leaving.abort();
      await reader.closed.catch(() => {});
      expect(await eventually(async () => (await running()) === 0)).toBe(true);
    },
    60_000,
  );
});
