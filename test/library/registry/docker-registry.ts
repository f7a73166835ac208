/** The distribution project's registry, if installed (Debian: `docker-registry`), on a separate folder. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../../free-port.ts";

export const DOCKER_REGISTRY = Bun.which("docker-registry");

export interface RunningRegistry {
  /** `127.0.0.1:port` */
  readonly host: string;
  stop(): Promise<void>;
}

/** @param login required `user:password` */
export async function startDockerRegistry(folder: string, login?: string): Promise<RunningRegistry> {
  if (!DOCKER_REGISTRY) throw new Error("docker-registry is not installed");
  const host = `127.0.0.1:${freePort()}`;
  await mkdir(folder, { recursive: true });
  const config = join(folder, "config.yml");
  const users = join(folder, "htpasswd");
  if (login) await writeFile(users, await htpasswd(login));
  await writeFile(
    config,
    `version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: ${JSON.stringify(join(folder, "data"))}}, maintenance: {uploadpurging: {enabled: false}}}
http: {addr: "${host}", relativeurls: true}
${login ? `auth: {htpasswd: {realm: test, path: ${JSON.stringify(users)}}}` : ""}
`,
  );
  const child = Bun.spawn([DOCKER_REGISTRY, "serve", config], { stdout: "ignore", stderr: "ignore" });
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await child.exited;
  };
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await Bun.sleep(20)) {
    if (child.exitCode !== null) throw new Error(`docker-registry ended with code ${child.exitCode}`);
    const isUp = await fetch(`http://${host}/v2/`).then(
      ({ status }) => status === 200 || status === 401,
      () => false,
    );
    if (isUp) return { host, stop };
  }
  await stop();
  throw new Error("docker-registry did not start");
}

async function htpasswd(login: string): Promise<string> {
  const [user, password = ""] = login.split(":");
  return `${user}:${await Bun.password.hash(password, { algorithm: "bcrypt", cost: 4 })}\n`;
}
