/** Connections on which nothing happens, over real sockets. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { createConnection } from "node:net";
import { startServer } from "../../../src/server/http/serve.ts";

setDefaultTimeout(60_000);

test("an incomplete request head closes the connection in time, while a slow answer does not", async () => {
  const half = Promise.withResolvers<void>();
  const app = {
    fetch: async (): Promise<Response> => {
      await half.promise; // the other connection has exceeded its time limit
      return new Response("late");
    },
  };
  const server = startServer(app, { host: { hostname: "127.0.0.1", port: 0 } });
  try {
    const slow = fetch(server.url).then((response) => response.text());
    const socket = createConnection(Number(new URL(server.url).port), "127.0.0.1");
    socket.on("error", () => undefined); // closed or reset: both end it
    socket.on("close", () => half.resolve());
    socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: ");
    expect(await slow).toBe("late");
  } finally {
    half.resolve();
    await server.stop(0);
  }
});
