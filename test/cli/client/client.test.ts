import { afterEach, describe, expect, test } from "bun:test";
import { Client } from "../../../src/cli/client/client.ts";

let server: ReturnType<typeof Bun.serve> | undefined;
afterEach(() => server?.stop(true));

/** A client of a server that answers every request this way. */
function clientOf(answer: (request: Request) => Response | Promise<Response>, apiKey?: string): Client {
  server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  return new Client({ url: `http://127.0.0.1:${server.port}`, apiKey });
}

const all = async (events: AsyncIterable<unknown>): Promise<unknown[]> => Array.fromAsync(events);

describe("errors", () => {
  test("have the server's message and status", async () => {
    const client = clientOf(() => Response.json({ error: "model 'x' not found" }, { status: 404 }));
    await expect(client.get("/api/tags")).rejects.toMatchObject({ message: "model 'x' not found", status: 404 });
  });

  test("have the whole answer if the server is not Hearth", async () => {
    const client = clientOf(() => new Response("<html>bad gateway</html>", { status: 502 }));
    await expect(client.get("/x")).rejects.toThrow("the server answered 502: <html>bad gateway</html>");
  });

  test("say how to start a server if there is none", async () => {
    const client = new Client({ url: "http://127.0.0.1:1", apiKey: undefined });
    await expect(client.get("/")).rejects.toThrow(
      "could not connect to a hearth server at http://127.0.0.1:1; start one with 'hearth serve'",
    );
  });

  test.each([
    ["before its answer", "", "; if it speaks TLS, set HEARTH_TLS_CERTIFICATE here too, or HEARTH_HOST=https://…"],
    ["in its answer", 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"status":"a"}\n', ""],
  ])("say that the server closed the connection %s", async (_, answer, advice) => {
    using closing = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket) => void socket.end(answer) },
    });
    const url = `http://127.0.0.1:${closing.port}`;
    const client = new Client({ url, apiKey: undefined });
    await expect(all(client.stream("/api/chat", {}))).rejects.toMatchObject({
      message: `the server at ${url} closed the connection before its answer was complete: its log may say why${advice}`,
    });
  });

  test("have no advice for programmers if the answer cannot be decoded", async () => {
    const client = clientOf(() => new Response("abc", { headers: { "content-encoding": "gzip" } }));
    const failure = await all(client.stream("/api/chat", {})).catch((error: unknown) => String(error));
    expect(failure).toContain("breaks off");
    expect(failure).not.toContain("verbose");
  });

  test("end a stream", async () => {
    const client = clientOf(() => new Response('{"status":"a"}\n{"error":"disk full"}\n'));
    const events = client.stream("/api/pull", {});
    expect((await events.next()).value).toEqual({ status: "a" });
    await expect(events.next()).rejects.toThrow("disk full");
  });

  test("show a line that is not JSON", async () => {
    await expect(all(clientOf(() => new Response("oops\n")).stream("/x", {}))).rejects.toThrow("not JSON: oops");
  });
});

test("a stream is read line by line, whatever its pieces", async () => {
  const bytes = new TextEncoder().encode('{"a":"é"}\n\n{"b":2}');
  const client = clientOf(
    () =>
      new Response(
        new ReadableStream({
          async pull(controller) {
            for (const byte of bytes) {
              controller.enqueue(Uint8Array.of(byte));
              await Bun.sleep(0);
            }
            controller.close();
          },
        }),
      ),
  );
  expect(await all(client.stream("/x", {}))).toEqual([{ a: "é" }, { b: 2 }]);
});

test("the key is sent with requests", async () => {
  const client = clientOf((request) => Response.json({ got: request.headers.get("authorization") }), "secret");
  expect(await client.get("/")).toEqual({ got: "Bearer secret" });
});

test("hasBlob is true for 200 and false for 404, and throws for another status", async () => {
  const client = clientOf((request) => new Response(null, { status: Number(new URL(request.url).pathname.slice(-3)) }));
  expect(await client.hasBlob("200")).toBe(true);
  expect(await client.hasBlob("404")).toBe(false);
  await expect(client.hasBlob("500")).rejects.toThrow("500");
});
