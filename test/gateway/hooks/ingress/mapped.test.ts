/** Memory for bodies of unauthenticated senders. */
import { expect, test } from "bun:test";
import { afterTest } from "../../../cleanups.ts";
import { makeWorld, silent } from "./fixtures.ts";

const MIB = 1024 * 1024;
const mapping = {
  match: { path: "large" },
  auth: { scheme: "github", secrets: "github-secret" },
  action: "wake",
  textTemplate: "x",
  maxBodyBytes: 32 * MIB,
};

test("one address uses at most its share of the body memory, which is free again after the body is read", async () => {
  const world = makeWorld({ hooks: { mappings: [mapping] }, log: silent });
  afterTest(() => world.store.close());
  const chunk = new Uint8Array(30 * MIB); // the only chunk of every body, which is not copied
  const begin = (peer: string, rest: Promise<void>) => {
    const held = Promise.withResolvers<void>();
    let pulls = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          if (pulls++ === 0) return controller.enqueue(chunk);
          held.resolve();
          await rest;
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const url = new URL("http://localhost/hooks/large");
    const { signal } = new AbortController();
    const bytes = () => Promise.reject(new Error("all at once"));
    const reply = world.ingress.receive({
      id: "r",
      method: "POST",
      url,
      headers: new Headers(),
      body,
      bytes,
      signal,
      peer,
    });
    return { held: held.promise, reply };
  };
  const { promise: rest, resolve: end } = Promise.withResolvers<void>();
  const waiting = ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"].map((peer) => begin(peer, rest));
  await Promise.all(waiting.map(({ held }) => held));
  const refused = await begin("192.0.2.1", Promise.resolve()).reply;
  expect([refused.status, refused.notes["code"], refused.headers["retry-after"]]).toEqual([503, "too_busy", "1"]);
  end();
  const unsigned = await Promise.all(waiting.map(({ reply }) => reply));
  expect(unsigned.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
  expect((await begin("192.0.2.1", Promise.resolve()).reply).status).toBe(401);
});
