/**
 * PostgreSQL as a process of the test's own: a cluster in a temporary folder, on a socket there, with syncs as in
 * production. `postgresql` in Debian. As root it runs as another user, because PostgreSQL refuses root.
 */
import { appendFileSync, chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Glob, SQL } from "bun";
import { fillOnce } from "../src/engine/backends/host/software-driver.ts";

/** Debian's newest version, or the one on the PATH. */
const INITDB =
  [...new Glob("usr/lib/postgresql/*/bin/initdb").scanSync({ cwd: "/", absolute: true })].toSorted().at(-1) ??
  Bun.which("initdb");
const BIN = INITDB === null ? undefined : dirname(INITDB);
const isRoot = process.getuid?.() === 0;
const setpriv = Bun.which("setpriv");
export const hasPostgres = BIN !== undefined && (!isRoot || setpriv !== null);

/** Each after 20 ms, and the time of a connection. */
const RECOVERY_TRIES = 1000;

export interface PostgresServer {
  /** For `database.url`. */
  readonly url: string;
  /** As a number: 150018 is 15.18. */
  readonly version: number;
  /** Folder of its socket. */
  readonly socket: string;
  start(): Promise<void>;
  /** Pid of its main process. */
  pid(): number;
  /** @param how `immediate`: as a crash would */
  stop(how?: "fast" | "immediate"): Promise<void>;
  /** Kills one of its processes: the others end with it, and it recovers by itself. Resolves once it has. */
  crashProcess(): Promise<void>;
  /** Runs statements by themselves, as its administrator. */
  run(text: string): Promise<void>;
  /** Stops it and removes its files. */
  remove(): Promise<void>;
}

/**
 * @param address an additional address to listen on, for all of its network
 * @param syncs false: losing data in a crash of the machine does not matter
 */
export async function startPostgres({ address = "", syncs = true } = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "hearth-pg-"));
  const user = isRoot ? ownerOf() : undefined;
  if (user) chownSync(folder, user.uid, user.gid);
  chmodSync(folder, 0o755);
  const data = join(folder, "data");
  const program = (name: string, ...args: string[]): Promise<void> => runAsOwner(join(BIN!, name), args, folder);
  const fsync = syncs ? "on" : "off";
  const options = `-c listen_addresses=${address} -c unix_socket_directories=${folder} -c fsync=${fsync} -c max_connections=400`;
  const server: PostgresServer = {
    url: `postgres://hearth@localhost/postgres?host=${folder}`,
    socket: join(folder, ".s.PGSQL.5432"),
    version: versionOf(),
    start: () => program("pg_ctl", "-D", data, "-o", options, "-l", join(folder, "log"), "-w", "start"),
    pid: () => Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0]),
    stop: (how = "fast") => program("pg_ctl", "-D", data, "-m", how, "-w", "stop"),
    run: (text) =>
      program("psql", "-h", folder, "-U", "hearth", "-d", "postgres", "-q", "-v", "ON_ERROR_STOP=1", "-c", text),
    async crashProcess() {
      const before = await checkpointerOf(server);
      const copy = "COPY (SELECT pg_backend_pid()) TO PROGRAM 'kill -9 $(cat)'"; // kills its own server process
      await server.run(copy).catch(() => {});
      // until the server has noticed, it still answers
      const isBack = async (): Promise<boolean> =>
        ![undefined, before].includes(await checkpointerOf(server).catch(() => undefined));
      for (let tries = 0; !(await isBack()); tries++) {
        if (tries === RECOVERY_TRIES) throw new Error("the server did not recover");
        await Bun.sleep(20);
      }
    },
    async remove() {
      await server.stop("immediate").catch(() => {}); // it may be stopped
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  await runAsOwner("cp", ["-a", await newCluster(), data], folder);
  if (address !== "") appendFileSync(join(data, "pg_hba.conf"), `host all all ${address}/24 trust\n`);
  await server.start();
  return server;
}

/** Pid of a process that each recovery replaces. */
async function checkpointerOf({ socket }: PostgresServer): Promise<number | undefined> {
  await using sql = new SQL({ adapter: "postgres", path: socket, username: "hearth", database: "postgres", max: 1 });
  const [row] = await sql.unsafe("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");
  return (row as { pid: number } | undefined)?.pid;
}

/** The files of a new cluster: made once and copied, which takes a third of the processor time. */
async function newCluster(): Promise<string> {
  const folder = join(tmpdir(), `hearth-pg-new-${versionOf()}-${process.getuid?.() ?? 0}`);
  await fillOnce(folder, async (partial) => {
    const data = join(partial, "data");
    mkdirSync(data, { mode: 0o700 });
    if (isRoot) chownSync(data, ownerOf().uid, ownerOf().gid);
    chmodSync(partial, 0o755);
    const form = ["--auth=trust", "--username=hearth", "--encoding=UTF8", "--locale=C"];
    // for new files; a server syncs its own
    await runAsOwner(join(BIN!, "initdb"), ["-D", data, ...form, "--no-sync", "--no-instructions"], partial);
  });
  return join(folder, "data");
}

async function runAsOwner(path: string, args: readonly string[], cwd: string): Promise<void> {
  const child = Bun.spawn(asOwner([path, ...args]), {
    cwd,
    env: { PATH: process.env["PATH"], LC_ALL: "C", PGOPTIONS: "-c default_transaction_read_only=off" },
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${path} ${args.join(" ")}: ${said}`);
}

/** A command, run as PostgreSQL's user. */
export function asOwner(command: readonly string[]): string[] {
  if (!isRoot) return [...command];
  const { uid, gid } = ownerOf();
  return [setpriv!, `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", ...command];
}

function versionOf(): number {
  const said = Bun.spawnSync([join(BIN!, "postgres"), "--version"]).stdout.toString();
  const [, major, minor] = /(\d+)\.(\d+)/.exec(said)!;
  return Number(major) * 10_000 + Number(minor);
}

/** PostgreSQL's user if this process is root. */
export function ownerOf(): { uid: number; gid: number } {
  const users = readFileSync("/etc/passwd", "utf8");
  const [, , uid, gid] = (/^postgres:.*$/m.exec(users) ?? /^nobody:.*$/m.exec(users))![0].split(":");
  return { uid: Number(uid), gid: Number(gid) };
}
