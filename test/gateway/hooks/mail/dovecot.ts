/**
 * Dovecot, an IMAP server as many run it, as a process of the test: on free ports of the loopback interface, with
 * its mail in a temporary folder. `dovecot-imapd` in Debian.
 */
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { ImapFlow } from "imapflow";
import { eventually } from "../../../e2e/hearth.ts";
import { freePort } from "../../../free-port.ts";

const BINARY = ["/usr/sbin/dovecot", "/usr/local/sbin/dovecot"].find((path) => existsSync(path));
export const hasDovecot =
  BINARY !== undefined && existsSync("/usr/lib/dovecot/imap-login") && Bun.which("openssl") !== null;
export const USER = "joe";
export const PASSWORD = "a-mail-password";
const START_MS = 30_000;

export interface Dovecot {
  readonly port: number;
  /** With TLS from the first byte; `caFile` is its authority. */
  readonly tlsPort: number;
  readonly caFile: string;
  /** Puts a mail into a mailbox; returns its number. */
  deliver(source: string | Uint8Array, options?: { mailbox?: string; receivedAt?: Date }): Promise<number>;
  /** Works on the mailbox as any other mail program would. */
  withClient<T>(work: (client: ImapFlow) => Promise<T>): Promise<T>;
  /** Makes the current mails of a mailbox unreadable for the server. */
  spoil(mailbox: string): void;
  /** Runs `doveadm`. */
  admin(...args: string[]): void;
  /** Lines of the server's log so far. */
  log(): string[];
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Stops it and removes its files. */
  remove(): Promise<void>;
}

/** @param settings further lines of its configuration */
export async function startDovecot({ settings = "" } = {}): Promise<Dovecot> {
  const folder = mkdtempSync(join(tmpdir(), "hearth-imap-"));
  const [port, tlsPort] = [freePort(), freePort()];
  const config = join(folder, "dovecot.conf");
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? "mail" : userInfo().username;
  makeCertificate(folder);
  writeFileSync(config, configuration({ folder, port, tlsPort, user }) + settings);
  for (const name of ["mail", "run"]) mkdirSync(join(folder, name));
  if (isRoot) {
    const [, , uid, gid] = readFileSync("/etc/passwd", "utf8")
      .match(/^mail:.*$/m)![0]
      .split(":");
    for (const each of [folder, join(folder, "mail")]) chownSync(each, Number(uid), Number(gid));
  }
  const logPath = join(folder, "log");
  writeFileSync(logPath, "");
  let child: Bun.Subprocess | undefined;
  const withClient: Dovecot["withClient"] = (work) => asJoe(port, work);
  const server: Dovecot = {
    port,
    tlsPort,
    caFile: join(folder, "cert.pem"),
    withClient,
    deliver: (source, { mailbox = "INBOX", receivedAt } = {}) =>
      withClient(async (client) => {
        const added = await client.append(mailbox, Buffer.from(source as string), [], receivedAt);
        if (!added || added.uid === undefined) throw new Error("not delivered");
        return added.uid;
      }),
    spoil(mailbox) {
      const box = join(folder, "mail", USER, `.${mailbox}`);
      for (const name of ["cur", "new"].flatMap((part) => [...new Bun.Glob(`${part}/*`).scanSync(box)])) {
        chmodSync(join(box, name), 0);
      }
    },
    admin(...args) {
      const { exitCode, stderr } = Bun.spawnSync(["doveadm", "-c", config, ...args]);
      if (exitCode !== 0) throw new Error(`doveadm ${args.join(" ")}: ${stderr.toString()}`);
    },
    log: () => readFileSync(logPath, "utf8").split("\n"),
    async start() {
      child = Bun.spawn([BINARY!, "-F", "-c", config], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
      const isUp = await eventually(() => withClient(async () => true).catch(() => false), START_MS);
      if (!isUp) throw new Error(`dovecot did not start: ${server.log().join("\n")}`);
    },
    async stop() {
      child?.kill("SIGTERM");
      await child?.exited;
    },
    async remove() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

async function asJoe<T>(port: number, work: (client: ImapFlow) => Promise<T>): Promise<T> {
  const auth = { user: USER, pass: PASSWORD };
  const client = new ImapFlow({ host: "127.0.0.1", port, secure: false, doSTARTTLS: false, auth, logger: false });
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.logout();
  }
}

function makeCertificate(folder: string): void {
  const files = ["-keyout", join(folder, "key.pem"), "-out", join(folder, "cert.pem")];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
  const kind = ["-newkey", "rsa:2048", "-nodes", "-days", "2"];
  const { exitCode, stderr } = Bun.spawnSync(["openssl", "req", "-x509", ...kind, ...files, ...names]);
  if (exitCode !== 0) throw new Error(`openssl: ${stderr.toString()}`);
}

const configuration = ({
  folder,
  port,
  tlsPort,
  user,
}: Record<"folder" | "user", string> & Record<"port" | "tlsPort", number>) => `
base_dir = ${folder}/run
state_dir = ${folder}/run
log_path = ${folder}/log
protocols = imap
listen = 127.0.0.1, 127.0.0.2
ssl = yes
ssl_cert = <${folder}/cert.pem
ssl_key = <${folder}/key.pem
disable_plaintext_auth = no
auth_failure_delay = 0
default_internal_user = ${user}
default_internal_group = ${user}
default_login_user = ${user}
first_valid_uid = 1
first_valid_gid = 1
mail_location = maildir:${folder}/mail/%u
mail_max_userip_connections = 100
# a new mail that it misses is found after 1 second, not 30
mailbox_idle_check_interval = 1 secs
passdb {
  driver = static
  args = password=${PASSWORD}
}
userdb {
  driver = static
  args = uid=${user} gid=${user} home=${folder}/mail/%u
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${port}
  }
  inet_listener imaps {
    port = ${tlsPort}
  }
}
service anvil {
  chroot =
  # no waiting after wrong passwords
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service stats {
  chroot =
}
`;
