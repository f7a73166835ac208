/** Sends a raw request target, byte for byte, which no client library would. */
import { connect, type NetConnectOpts } from "node:net";

export interface RawAnswer {
  readonly status: number;
  readonly body: string;
}

/** @param at a port of the loopback interface, or the path of a Unix socket */
export function rawRequest(
  at: number | string,
  { method = "GET", target, headers = {}, body = "" }: RawRequest,
): Promise<RawAnswer> {
  const fields = { host: "localhost", connection: "close", "content-length": String(body.length), ...headers };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const where: NetConnectOpts = typeof at === "number" ? { port: at, host: "127.0.0.1" } : { path: at };
  return new Promise((resolve, reject) => {
    let got = "";
    const socket = connect(where, () => socket.write(`${method} ${target} HTTP/1.1\r\n${head.join("")}\r\n${body}`));
    socket.setTimeout(20_000, () => socket.destroy(new Error(`no answer to ${method} ${target}`)));
    socket.on("data", (data) => (got += data.toString("latin1")));
    socket.on("error", reject);
    socket.on("close", () => {
      const [, status] = /^HTTP\/1\.1 (\d+)/.exec(got) ?? [];
      resolve({ status: Number(status), body: got.slice(got.indexOf("\r\n\r\n") + 4) });
    });
  });
}

export interface RawRequest {
  readonly method?: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}
