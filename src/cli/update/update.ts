/** `hearth update`: replaces this program by a signed release, or by the previous program. */
import { realpathSync } from "node:fs";
import { chmod, rm } from "node:fs/promises";
import { AppError, messageOf, VERSION } from "../../base/index.ts";
import { shipped, storageError } from "../../base/system.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { interruptible, Interrupted } from "../terminal/context.ts";
import { makeProgress } from "../terminal/progress.ts";
import { fetchSmall, fetchUnpacked } from "./fetch.ts";
import { fetchGpu } from "./gpu.ts";
import { updatedBy } from "./installed.ts";
import { MANIFEST, parseManifest, type Kind, type Manifest, type ReleaseFile } from "./manifest.ts";
import { parsePublicKey, verify } from "./minisign.ts";
import { previousOf, putProgram, rollBack } from "./replace.ts";

/** More than a list of some hundred files. */
const MANIFEST_BYTES_MAX = 1 << 20;
const SIGNATURE_BYTES_MAX = 4096;
/** Time for a first start: `--version` unpacks nothing, but a virus scanner may read the whole program. */
const START_MS = 60_000;
const RESTART = "restart servers that run now: they start this program for each model that they load";

export interface UpdateOptions {
  readonly check?: boolean;
  readonly gpu?: boolean;
  readonly rollback?: boolean;
  readonly downgrade?: boolean;
  readonly url?: string;
  readonly key?: string;
}

export interface UpdateContext {
  readonly terminal: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The program to replace; undefined: Hearth runs from its sources. */
  readonly program: string | undefined;
  /** The system and processor it was compiled for, such as `linux-x64`. */
  readonly target: string;
}

export function contextHere(terminal: Terminal, env: UpdateContext["env"]): UpdateContext {
  const program = shipped && realpathSync(process.execPath);
  return { terminal, env, program, target: shipped?.target ?? "" };
}

export async function update(context: UpdateContext, options: UpdateOptions): Promise<void> {
  const { terminal, target } = context;
  if (options.rollback) return goBack(context);
  if (options.check) return report(context, await readManifest(sourceOf(context, options)));
  const program = ownProgram(context, options.gpu ? "gpu" : "program"); // first: it may have another way
  const source = sourceOf(context, options);
  await interruptible(async (signal) => {
    const progress = makeProgress(terminal);
    const show = (about: ReleaseFile) => (completed: number) =>
      progress.show({ status: `downloading ${about.file}`, digest: about.sha256, total: about.bytes, completed });
    try {
      const manifest = await readManifest(source, signal);
      if (options.gpu) {
        const about = fileFor(manifest, "gpu", target);
        return terminal.note(await fetchGpu(source.url, about, { signal, onBytes: show(about) }));
      }
      if (!mayInstall(terminal, manifest.version, options)) return;
      const about = fileFor(manifest, "program", target);
      await install(program, { about, url: source.url, version: manifest.version }, { signal, onBytes: show(about) });
      terminal.note(`updated ${program} from ${VERSION} to ${manifest.version}`);
      terminal.note(RESTART);
      terminal.note(`the program before is ${previousOf(program)}: 'hearth update --rollback' goes back to it`);
    } catch (error) {
      throw signal.aborted ? new Interrupted("stopped; nothing was changed") : error;
    } finally {
      progress.end();
    }
  });
}

interface Source {
  readonly url: string;
  readonly key: string;
}

/** Throws `bad_request` where there is no address or no key. */
function sourceOf({ env }: UpdateContext, options: UpdateOptions): Source {
  const url = options.url ?? (env["HEARTH_UPDATE_URL"] || shipped?.release?.url);
  const key = options.key ?? (env["HEARTH_UPDATE_KEY"] || shipped?.release?.key);
  if (!url)
    throw new AppError("bad_request", "this program names no address of releases: expected --url or HEARTH_UPDATE_URL");
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ""))
    throw new AppError("bad_request", `address of releases: expected http:// or https://, got '${url}'`);
  if (!key)
    throw new AppError("bad_request", "this program trusts no key of releases: expected --key or HEARTH_UPDATE_KEY");
  return { url: url.replace(/\/+$/, ""), key };
}

/** The list of the newest release, once its signature is right. Throws `bad_request`, `upstream`. */
async function readManifest({ url, key }: Source, signal?: AbortSignal): Promise<Manifest> {
  const trusted = parsePublicKey(key);
  const bytes = await fetchSmall(`${url}/${MANIFEST}`, MANIFEST_BYTES_MAX, { signal });
  const signature = await fetchSmall(`${url}/${MANIFEST}.minisig`, SIGNATURE_BYTES_MAX, { signal });
  try {
    await verify(bytes, new TextDecoder().decode(signature), trusted);
    return parseManifest(bytes);
  } catch (error) {
    throw new AppError("bad_request", `${url}/${MANIFEST} is refused: ${messageOf(error)}`, { cause: error });
  }
}

/** Throws `unsupported` if a package manager or a checkout has to update the program. */
function ownProgram({ program }: UpdateContext, kind: Kind): string {
  if (program === undefined)
    throw new AppError("unsupported", "Hearth runs from its sources here: git pull && bun install");
  const by = kind === "program" ? updatedBy(program) : undefined; // a library is stored in the user's cache
  if (by !== undefined) throw new AppError("unsupported", `'${program}' is updated by: ${by}`);
  return program;
}

function report({ terminal, program }: UpdateContext, { version }: Manifest): void {
  if (!isNewer(version, VERSION)) return terminal.write(`${VERSION} is the newest release\n`);
  const by = program === undefined ? "git pull && bun install" : (updatedBy(program) ?? "hearth update");
  terminal.write(`${version} is available; ${VERSION} is installed. Update: ${by}\n`);
}

/** By https://semver.org: a version with a suffix is older than the same version without one. */
const isNewer = (a: string, b: string): boolean => Bun.semver.order(a, b) > 0;

/** Throws `conflict` for an older release, unless the user allows it. */
function mayInstall(terminal: Terminal, version: string, { downgrade = false }: UpdateOptions): boolean {
  if (isNewer(version, VERSION)) return true;
  if (version === VERSION) {
    terminal.note(`${VERSION} is the newest release`);
    return false;
  }
  if (downgrade) return true;
  throw new AppError("conflict", `the release is ${version}, older than ${VERSION}: --downgrade installs it`);
}

/** Throws `not_found`. */
function fileFor({ version, files }: Manifest, kind: Kind, target: string): ReleaseFile {
  const found = files.find((file) => file.kind === kind && file.target === target);
  if (found) return found;
  const what = kind === "gpu" ? "GPU library" : "program";
  throw new AppError("not_found", `the release ${version} has no ${what} for ${target}`);
}

interface Wanted {
  readonly about: ReleaseFile;
  readonly url: string;
  readonly version: string;
}

async function install(
  program: string,
  { about, url, version }: Wanted,
  options: { signal: AbortSignal; onBytes: (bytes: number) => void },
): Promise<void> {
  const next = `${program}.${crypto.randomUUID()}${program.endsWith(".exe") ? ".exe" : ""}`;
  try {
    await fetchUnpacked(url, about, next, options);
    await rm(`${next}.zst`);
    await checkStarts(next, version);
    options.signal.throwIfAborted();
    await putProgram(program, next);
  } catch (error) {
    throw storageError(error, program);
  } finally {
    await Promise.all([next, `${next}.zst`].map((path) => rm(path, { force: true })));
  }
}

/** Throws `bad_file` unless the new program runs here and prints its version. */
async function checkStarts(program: string, version: string): Promise<void> {
  await chmod(program, 0o755);
  let said: string;
  try {
    const child = Bun.spawn([program, "--version"], {
      stdout: "pipe",
      stderr: "ignore",
      stdin: "ignore",
      timeout: START_MS,
    });
    said = (await new Response(child.stdout).text()).trim();
    await child.exited;
  } catch (error) {
    throw new AppError("bad_file", `the new program does not start here: ${messageOf(error)}`, { cause: error });
  }
  if (!said.startsWith(`hearth ${version} `))
    throw new AppError(
      "bad_file",
      `the new program does not run here: expected 'hearth ${version}', got '${said.slice(0, 80)}'`,
    );
}

async function goBack(context: UpdateContext): Promise<void> {
  const program = ownProgram(context, "program");
  await rollBack(program);
  context.terminal.note(`${program} is the program before again`);
  context.terminal.note(RESTART);
}
