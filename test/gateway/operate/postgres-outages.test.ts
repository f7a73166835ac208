/** A whole gateway whose database fails while it runs: nothing is accepted without being stored. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eventually } from "../../e2e/hearth.ts";
import { startProxy } from "../../postgres-proxy.ts";
import { hasPostgres, ownerOf, startPostgres, type PostgresServer } from "../../postgres-server.ts";
import { quiet, startGateway, TOKEN, type GatewayBench } from "./fixtures.ts";

const WAIT_MS = 60_000;

/** A separate file system, of this many megabytes; undefined if this process may not mount one. */
function mountDisk(megabytes: number): { path: string; unmount(): void } | undefined {
  const path = mkdtempSync(join(tmpdir(), "hearth-disk-"));
  const options = ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path];
  const isMounted = Bun.which("mount") !== null && Bun.spawnSync(["mount", ...options]).success;
  const unmount = (): void => {
    if (isMounted) Bun.spawnSync(["umount", path]);
    rmSync(path, { recursive: true, force: true });
  };
  if (isMounted) return { path, unmount };
  unmount();
  return undefined;
}

const disk = hasPostgres ? mountDisk(16) : undefined;

describe.skipIf(!hasPostgres)("outages of a database (Debian's postgresql)", () => {
  let server: PostgresServer;
  beforeAll(async () => void (server = await startPostgres()), 120_000);
  afterAll(async () => {
    await server?.remove();
    disk?.unmount();
  }, 60_000);

  const settings = (url: string, schema: string) => ({
    database: { url, schema, connections: 4 },
    hooks: { enabled: true, token: TOKEN },
    agents: quiet,
  });

  /** Sends wakes with texts of their own, and records the accepted ones. */
  function makeSender(bench: GatewayBench, padding = "") {
    const accepted: string[] = [];
    let last: Response | undefined;
    const isAccepted = async (): Promise<boolean> => {
      const text = crypto.randomUUID();
      last = await bench.post("wake", { text: `${text}${padding}`, mode: "next-heartbeat" });
      if (last.status === 200) accepted.push(text);
      return last.status === 200;
    };
    return {
      accepted,
      isAccepted,
      isRefused: async () => !(await isAccepted()),
      /** The answer to the last refused one. */
      answer: async () => ({
        status: last!.status,
        isToRepeat: Number(last!.headers.get("retry-after")) > 0,
        ...((await last!.json()) as object),
      }),
    };
  }

  const REFUSAL = { status: 503, isToRepeat: true, ok: false, code: "unavailable" };

  async function expectRefusal(
    bench: GatewayBench,
    sender: ReturnType<typeof makeSender>,
    { begin, end, message }: { begin: () => unknown; end: () => unknown; message?: RegExp },
  ): Promise<void> {
    await begin();
    let problem = "";
    const isSeen = async (): Promise<boolean> => {
      const said = bench.gateway.check().then(
        () => "none",
        ({ message }: Error) => message,
      );
      return message!.test((problem = await said));
    };
    // at once: both may take as long as the database does not answer
    const isRefused = Promise.all([eventually(sender.isRefused, WAIT_MS), message && eventually(isSeen, WAIT_MS)]);
    expect((await isRefused)[0]).toBe(true);
    expect(await sender.answer()).toMatchObject(REFUSAL);
    if (message) expect(problem).toMatch(message);
    await end();
    expect(await eventually(sender.isAccepted, WAIT_MS)).toBe(true);
    await bench.gateway.check();
  }

  const texts = async (bench: GatewayBench): Promise<string[]> =>
    (await bench.events()).map((text) => text.slice(0, 36));

  const configure = (setting: string) => async (): Promise<void> => {
    await server.run(`ALTER SYSTEM ${setting}`);
    await server.run("SELECT pg_reload_conf()");
  };

  test("refuses webhooks with 503 and stores none of them while it is read-only, not durable, locked or silent", async () => {
    const proxy = startProxy(server);
    const holder = new SQL({
      adapter: "postgres",
      path: server.socket,
      username: "hearth",
      database: "postgres",
      max: 1,
    });
    const bench = await startGateway(settings(proxy.url, "troubled"));
    const sender = makeSender(bench);
    await expectRefusal(bench, sender, {
      begin: configure("SET default_transaction_read_only = on"),
      end: configure("RESET default_transaction_read_only"),
      message: /^the database (is read-only|does not fit: .* read-only)$/,
    });
    await expectRefusal(bench, sender, {
      begin: configure("SET synchronous_commit = off"),
      end: configure("RESET synchronous_commit"),
      message: /^the database does not fit: expected synchronous_commit to be on, got off/,
    });
    const other = await startGateway(settings(server.url, "locked"));
    const otherSender = makeSender(other);
    await Promise.all([
      expectRefusal(other, otherSender, {
        begin: () => holder.unsafe("BEGIN; LOCK TABLE locked.deliveries IN EXCLUSIVE MODE").simple(),
        end: () => holder.unsafe("ROLLBACK"),
      }),
      expectRefusal(bench, sender, {
        begin: () => (proxy.isSilent = true),
        end: () => (proxy.isSilent = false),
        message: /^the database (does not answer|cannot be reached)/,
      }),
    ]);
    expect((await texts(bench)).toSorted()).toEqual(sender.accepted.toSorted());
    expect((await texts(other)).toSorted()).toEqual(otherSender.accepted.toSorted());
    await other.stop();
    await bench.stop();
    await holder.close({ timeout: 0 });
    proxy.stop();
  }, 180_000);

  test.skipIf(!disk)(
    "refuses webhooks with 503 while it is full, and accepts them once there is room (root, to mount a disk)",
    async () => {
      const { uid, gid } = ownerOf();
      const path = join(disk!.path, "tables");
      mkdirSync(path);
      Bun.spawnSync(["chown", `${uid}:${gid}`, path]);
      await server.run(`CREATE TABLESPACE small LOCATION '${path}'`);
      await server.run("ALTER ROLE hearth SET default_tablespace = small");
      const bench = await startGateway(settings(server.url, "full"));
      await server.run("ALTER ROLE hearth RESET default_tablespace");
      const filler = join(disk!.path, "filler");
      const sender = makeSender(bench, crypto.getRandomValues(Buffer.alloc(3000)).toString("hex"));
      await expectRefusal(bench, sender, {
        begin() {
          for (let at = 0, isFull = false; !isFull; at++) {
            try {
              writeFileSync(`${filler}${at}`, Buffer.alloc(1 << 18));
            } catch {
              isFull = true;
            }
          }
        },
        end: () => {
          for (const name of new Bun.Glob("filler*").scanSync(disk!.path)) rmSync(join(disk!.path, name));
        },
      });
      expect((await texts(bench)).toSorted()).toEqual(sender.accepted.toSorted());
    },
    120_000,
  );
});
