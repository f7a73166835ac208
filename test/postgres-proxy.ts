/** A proxy to a PostgreSQL server that can cut, silence, or change a connection. */
import type { PostgresServer } from "./postgres-server.ts";

/**
 * `request`: a commit does not reach the server; `answer`: its answer is lost; `late`: the same, and the client notices
 * before the server has done anything.
 */
export type Cut = "request" | "answer" | "late";

export interface PostgresProxy {
  /** For `database.url`. */
  readonly url: string;
  /** The fate of the next commits; undefined: they pass. */
  readonly cuts: (Cut | undefined)[];
  /** True blocks all traffic silently, both ways; connections with blocked traffic stay dead afterwards. */
  isSilent: boolean;
  /** Runs after a cut, which ends all connections; new connections wait for it. */
  afterCut: (() => Promise<void>) | undefined;
  /** Awaited before the client notices a late cut. */
  beforeLate: (() => Promise<void>) | undefined;
  stop(): void;
}

interface Line {
  isDead: boolean;
  /** The client's names of prepared statements that commit. */
  readonly commits: Set<string>;
  server?: Bun.Socket<unknown>;
  readonly waiting: Uint8Array[];
}

/** True if data runs a commit. */
function asksToCommit({ commits }: Line, data: Buffer): boolean {
  const text = data.toString("latin1");
  for (const [, name] of text.matchAll(/P.{4}([^\0]+)\0COMMIT\0/gs)) commits.add(name!);
  return [...commits].some((name) => new RegExp(`B.{4}\\0${RegExp.escape(name)}\\0`, "s").test(text));
}

/** The server's message after a commit. */
const COMMITTED = "COMMIT\0";

/** @param change changes the server's data before it is passed on */
export function startProxy(
  server: PostgresServer,
  change: (data: Buffer) => Uint8Array = (data) => data,
): PostgresProxy {
  let underway: Cut | undefined;
  let held: Promise<void> | undefined;
  const clients = new Set<Bun.Socket<Line>>();
  const cut = (client: Bun.Socket<Line>): void => {
    underway = undefined;
    held = proxy.afterCut?.();
    for (const each of proxy.afterCut ? clients : [client]) {
      each.data.server?.end();
      each.end();
    }
  };
  const isDead = ({ data }: Bun.Socket<Line>): boolean => (data.isDead ||= proxy.isSilent);
  const listener = Bun.listen<Line>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(client) {
        client.data = { isDead: proxy.isSilent, waiting: [], commits: new Set() };
        clients.add(client);
        if (client.data.isDead) return;
        const connect = (): Promise<unknown> =>
          Bun.connect({
            unix: server.socket,
            socket: {
              open(socket) {
                client.data.server = socket;
                for (const data of client.data.waiting) socket.write(data);
              },
              data(_, data) {
                if (underway === "answer" && data.includes(COMMITTED)) cut(client);
                else if (!isDead(client)) client.write(change(data));
              },
              close() {
                if (!isDead(client)) client.end();
              },
              error: () => void client.end(),
            },
          });
        (held ?? Promise.resolve()).then(connect).catch(() => client.end());
      },
      data(client, data) {
        if (isDead(client)) return;
        if (asksToCommit(client.data, data)) underway = proxy.cuts.shift();
        if (underway === "request") cut(client);
        else if (underway === "late") {
          underway = undefined;
          client.data.server?.write(data);
          client.data.isDead = true; // while its server continues
          void (proxy.beforeLate?.() ?? Promise.resolve()).then(() => client.end());
        } else if (client.data.server) client.data.server.write(data);
        else client.data.waiting.push(data);
      },
      close(client) {
        clients.delete(client);
        if (!client.data.isDead) client.data.server?.end();
      },
      error: () => {},
    },
  });
  const proxy: PostgresProxy = {
    url: `postgres://hearth@127.0.0.1:${listener.port}/postgres`,
    cuts: [],
    isSilent: false,
    afterCut: undefined,
    beforeLate: undefined,
    stop: () => listener.stop(true),
  };
  return proxy;
}
