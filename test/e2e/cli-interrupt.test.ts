/** Ctrl+C during an answer of `hearth run`, at a terminal. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { sitDownAt } from "./person.ts";

setDefaultTimeout(120_000);

const home = mkdtempSync(join(tmpdir(), "hearth-interrupt-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** A server whose answers on this path begin and do not end: a model's may end before a key is pressed. */
function unending(path: string) {
  const { promise: left, resolve } = Promise.withResolvers<void>();
  const begun = (): Response =>
    new Response(
      new ReadableStream({
        start: (answer) => answer.enqueue('{"message":{"content":"Once upon"},"response":"Once upon","done":false}\n'),
        cancel: () => resolve(),
      }),
    );
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: ({ url }) => (url.endsWith(path) ? begun() : Response.json({ capabilities: ["completion"] })),
  });
  return {
    env: { HEARTH_HOST: `127.0.0.1:${server.port}` },
    /** Resolves once a client has left its answer. */
    left,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

test("Ctrl+C ends the answer to one question, keeps its text, and exits with 130", async () => {
  await using server = unending("/api/generate");
  const person = sitDownAt(["run", "m", "Go on."], home, server.env);
  expect(await person.sees("Once upon")).toBe(true);
  person.child.terminal!.write("\x03");
  expect(await person.ended()).toBe(130);
  await server.left;
  expect(person.screen()).toContain("Once upon");
  expect(person.screen()).not.toContain("Error");
});

test("Ctrl+C stops an answer but not the conversation; Ctrl+D ends it", async () => {
  await using server = unending("/api/chat");
  const person = sitDownAt(["run", "m", "--nohistory"], home, server.env);
  expect(await person.sees(">>> ")).toBe(true);
  await person.types("Tell me a story about a fox.\r", "Once upon");
  await person.types("\x03", ">>> ");
  await server.left;
  expect(person.screen()).not.toContain("Use Ctrl"); // it reached the answer
  await person.types("/set quiet\r", />>> /);
  await person.types("\x03", "Use Ctrl + d or /bye to exit.");
  person.child.terminal!.write("\x04");
  expect(await person.ended()).toBe(0);
});
