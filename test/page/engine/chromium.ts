/**
 * A page of a headless browser from the development dependencies: its served files and its posted messages. Tests are
 * skipped, by name, if the browser cannot start.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { browserPath } from "../../engine/backends/webgpu/swiftshader.ts";

/** Nothing that the browser would fetch or send of its own accord; WebGPU on its own software adapter. */
export const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu-sandbox",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--enable-dawn-features=disable_workgroup_init", // as in processes: it takes seconds to compile
];

/** A page posts its messages here. */
export const SAID = "/said";

/** The reason why no browser can start here; undefined: one can. */
export async function browserRefusal(): Promise<string | undefined> {
  try {
    const child = Bun.spawn([await browserPath(), "--version"], { stdout: "ignore", stderr: "pipe" });
    const said = await new Response(child.stderr).text();
    return (await child.exited) === 0 ? undefined : said.trim().split("\n")[0];
  } catch (error) {
    return String(error);
  }
}

/** A page's message, as JSON. */
type Said = { readonly error: string } | { readonly done: true } | object;

interface PageOptions {
  /** A module, which posts to `SAID`: objects, `{done: true}` at its end, `{error}` on failure. */
  readonly script: string;
  /** Answers all other requests of the page. */
  readonly serve?: (request: Request) => Response | Promise<Response> | undefined;
  /** Kept between pages; absent: a new one, which is removed. */
  readonly profile?: string;
  /** Port of the page's server, because storage belongs to an origin. Default: any. */
  readonly port?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Opens a page and returns all of its messages. Throws its error. */
export async function sayingsOf<T>({ script, serve, profile, port = 0, headers = {} }: PageOptions): Promise<T[]> {
  const sayings: T[] = [];
  const end = Promise.withResolvers<void>();
  const html = `<!doctype html><script type="module">
    import("/page.js").catch((error) =>
      fetch("${SAID}", { method: "POST", body: JSON.stringify({ error: String(error) }) }));
  </script>`;
  const answer = (body: string, type: string): Response =>
    new Response(body, { headers: { "content-type": type, ...headers } });
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/page.js") return answer(script, "text/javascript");
      if (pathname !== SAID) return (await serve?.(request)) ?? answer(html, "text/html");
      const said = (await request.json()) as Said; // sent by our own page
      if ("error" in said) end.reject(new Error(`the page: ${said.error}`));
      else if ("done" in said && said.done === true) end.resolve();
      else sayings.push(said as T);
      return new Response();
    },
  });
  const folder = profile ?? (await mkdtemp(join(tmpdir(), "hearth-test-profile-")));
  const child = Bun.spawn([await browserPath(), ...FLAGS, `--user-data-dir=${folder}`, server.url.href], {
    stdio: ["ignore", "ignore", "ignore"],
    onExit: (_, code, signal) => end.reject(new Error(`the browser ended: ${code ?? signal}`)),
  });
  try {
    await end.promise;
    return sayings;
  } finally {
    child.kill("SIGKILL");
    await child.exited;
    if (profile === undefined) await rm(folder, { recursive: true, force: true });
  }
}
