import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { NewsWire } from "../../../src/gateway/database/postgres/news.ts";
import { eventually } from "../../e2e/hearth.ts";
import { startProxy } from "../../postgres-proxy.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../../postgres-server.ts";

const WAIT_MS = 60_000;

describe.skipIf(!hasPostgres)("news between nodes (Debian's postgresql)", () => {
  let server: PostgresServer;
  beforeAll(async () => void (server = await startPostgres()), 120_000);
  afterAll(() => server?.remove(), 60_000);
  const makeWire = (url = server.url) => new NewsWire({ url, schema: "a schema", connections: 1, name: "test" });

  test("reaches the other node and not the sender; texts of any length arrive whole and in order", async () => {
    const [first, second] = [makeWire(), makeWire()];
    const received: string[] = [];
    const own: string[] = [];
    let text = "";
    let textAtEnd: string | undefined;
    first.listen((topic, id) => own.push(`${topic} ${id}`));
    second.listen((topic, id, piece) => {
      if (topic === "text") text += piece;
      else received.push(`${topic} ${id}`);
      if (topic === "run" && id === "end") textAtEnd = text;
    });
    await Promise.all([first.open(), second.open()]);
    expect([...own, ...received]).toEqual(["all ", "all "]); // both have just begun to listen
    const said = `a "quote",\nline two \u2028 \u{1f600}${"\u0001".repeat(2500)}${"é".repeat(9000)}`;
    for (let i = 0; i < said.length; i += 700) first.tell("text", "one", said.slice(i, i + 700));
    for (let i = 0; i < 300; i++) first.tell("run", `${i}`);
    first.tell("turns");
    first.tell("turns");
    first.tell("run", "end");
    expect(await eventually(() => textAtEnd !== undefined, WAIT_MS)).toBe(true);
    expect(textAtEnd === said).toBe(true);
    expect(received.filter((news) => news === "turns ")).toHaveLength(1);
    expect(received).toHaveLength(1 + 300 + 2);
    expect(own).toEqual(["all "]);
    await Promise.all([first.close(), second.close()]);
  });

  test("is received over one connection once the server is back, after failed sends meanwhile", async () => {
    const proxy = startProxy(server);
    const wire = makeWire(proxy.url);
    let returns = 0;
    wire.listen((topic) => (returns += Number(topic === "all")));
    await wire.open();
    await server.stop("immediate");
    const speaking = setInterval(() => wire.tell("turns"), 10); // on a separate connection, which fails too
    await Bun.sleep(1500); // time for several reconnects
    await server.start();
    expect(await eventually(() => returns > 1, WAIT_MS)).toBe(true);
    clearInterval(speaking);
    await Bun.sleep(600); // time for unwanted reconnects
    await using sql = new SQL({ adapter: "postgres", path: server.socket, username: "hearth", database: "postgres" });
    const listening = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    expect([...(await sql.unsafe(listening))]).toEqual([{ n: 1 }]);
    await wire.close();
    expect(await eventually(async () => (await sql.unsafe(listening))[0].n === 0, WAIT_MS)).toBe(true);
    proxy.stop();
  }, 180_000);

  test("is received again after a crash of the server or a silent connection, without output on the terminal", async () => {
    const warned = spyOn(console, "warn");
    const proxy = startProxy(server);
    const speaker = makeWire();
    const listener = makeWire(proxy.url);
    const received = new Set<string>();
    listener.listen((topic, id) => void (topic === "run" && received.add(id)));
    await Promise.all([speaker.open(), listener.open()]);
    const hears = async (): Promise<boolean> => {
      const id = crypto.randomUUID(); // news of an earlier try may come late
      speaker.tell("run", id);
      return eventually(() => received.has(id), 500);
    };
    expect(await eventually(hears, WAIT_MS)).toBe(true);
    await server.stop("immediate");
    await Bun.sleep(300); // reconnects fail meanwhile
    await server.start();
    expect(await eventually(hears, WAIT_MS)).toBe(true);
    proxy.isSilent = true;
    expect(await hears()).toBe(false);
    proxy.isSilent = false; // existing connections stay dead
    expect(await eventually(hears, WAIT_MS)).toBe(true);
    expect(warned).not.toHaveBeenCalled();
    await Promise.all([speaker.close(), listener.close()]);
    proxy.stop();
    warned.mockRestore();
  }, 180_000);
});
