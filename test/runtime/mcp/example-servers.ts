/** The example servers of the protocol's library. */
import { join } from "node:path";
import { afterTest } from "../../cleanups.ts";

const ROOT = join(import.meta.dir, "../../..");

/** The program of an example server, such as `everything`. */
export const example = (name: string): string =>
  join(ROOT, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);

/** Starts the example server over HTTP and returns its address. */
export async function everythingOverHttp(): Promise<{
  url: string;
  stop: () => Promise<unknown>;
  start: () => Promise<void>;
}> {
  const probe = Bun.serve({ port: 0, fetch: () => new Response() });
  const { port } = probe;
  await probe.stop(true);
  let child: Bun.Subprocess | undefined;
  const stop = async (): Promise<unknown> => {
    child?.kill(9);
    return child?.exited;
  };
  const start = async (): Promise<void> => {
    const env = { ...process.env, PORT: String(port) };
    child = Bun.spawn([process.execPath, example("everything"), "streamableHttp"], {
      env,
      stdio: ["ignore", "ignore", "ignore"],
    });
    for (let i = 0; i < 200; i++) {
      if (
        await fetch(`http://127.0.0.1:${port}/mcp`).then(
          () => true,
          () => false,
        )
      )
        return;
      await Bun.sleep(50);
    }
    throw new Error("the example server did not start");
  };
  afterTest(stop);
  await start();
  return { url: `http://127.0.0.1:${port}/mcp`, start, stop };
}
