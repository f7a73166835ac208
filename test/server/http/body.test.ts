/** Bodies that stop arriving, over real sockets. */
import { afterEach, expect, test } from "bun:test";
import { createConnection } from "node:net";
import { received } from "../../../src/server/http/body.ts";
import { errorBody, statusOf } from "../../../src/server/http/errors.ts";

const IDLE_MS = 400;

let stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops) stop();
  stops = [];
});

/** A server that answers with the length of the body, or with the error. */
function serve(): number {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      try {
        let length = 0;
        for await (const chunk of received(request, IDLE_MS)) length += chunk.length;
        return Response.json({ length });
      } catch (error) {
        return Response.json(errorBody(error), { status: statusOf(error) });
      }
    },
  });
  stops.push(() => void server.stop(true));
  return server.port!;
}

/** Sends the pieces with a pause before each, then waits for the answer's end. */
async function send(pieces: readonly string[], { announced, pauseMs }: { announced: number; pauseMs: number }) {
  const socket = createConnection(serve(), "127.0.0.1");
  stops.push(() => void socket.destroy());
  const answer = Promise.withResolvers<string>();
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString();
    if (/\r\n\r\n.*\}/s.test(text)) answer.resolve(text);
  });
  socket.on("error", answer.reject);
  socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${announced}\r\n\r\n`);
  for (const piece of pieces) {
    await Bun.sleep(pauseMs);
    socket.write(piece);
  }
  return answer.promise;
}

test("a body that stops arriving is answered with 408", async () => {
  const answer = await send(["half of"], { announced: 100, pauseMs: 0 });
  expect(answer).toStartWith("HTTP/1.1 408");
  expect(answer).toContain('{"error":"request body: expected more of it within 0.4 s, got nothing"}');
});

test("a slow but steady body is read to its end, even beyond the time limit of one pause", async () => {
  const pieces = Array.from({ length: 12 }, () => "0123456789");
  const answer = await send(pieces, { announced: 120, pauseMs: IDLE_MS / 8 });
  expect(answer).toStartWith("HTTP/1.1 200");
  expect(answer).toContain('{"length":120}');
});
