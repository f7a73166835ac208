/** `hearth channels check` and `test`: check that chat platforms accept messages, without a server. */
import {
  checkChannels,
  findChannelId,
  loadChannels,
  type LoadedChannels,
  readSnapshot,
  resolveTarget,
  type Target,
} from "../../gateway/setup.ts";
import { oneLine } from "../../gateway/agent/boundary/index.ts";
import { AppError, unknownNameMessage } from "../../base/index.ts";
import { describePath } from "../../base/config/index.ts";
import { ReportedFailure } from "../terminal/context.ts";
import { formatTable } from "../terminal/format.ts";
import type { LocalContext } from "./hooks-local.ts";

const MESSAGE = "A test message from Hearth: this channel works.";
const SEND_MS = 30_000;
/** Maximum number of characters of a platform's reason in a table. */
const REASON_CHARS_MAX = 400;

/** Throws if a channel is unusable, or its platform refuses our credentials. */
export async function checkAll({ terminal, sources }: LocalContext): Promise<void> {
  const { channels, problems } = await load(sources);
  if (channels.size === 0 && problems.length === 0) {
    throw new AppError("not_found", "no channel is configured: add one to the section 'channels'");
  }
  const asked = await checkChannels(channels);
  const rows = [
    ...asked.map(({ id, health }) => [id, health.ok ? "ok" : "failed", health.ok ? "" : health.reason]),
    ...problems.map(({ path, message }) => [String(path[1] ?? ""), "unusable", `${describePath(path)}: ${message}`]),
  ].map((row) => row.map((text) => oneLine(text!, REASON_CHARS_MAX)));
  terminal.write(formatTable(["CHANNEL", "STATE", "REASON"], rows));
  if (rows.some(([, state]) => state !== "ok")) throw new ReportedFailure();
}

export interface TestOptions {
  readonly to?: string;
  readonly message?: string;
}

/** Sends one message. Throws if it failed, or may not have arrived. */
export async function sendTest(
  { terminal, sources }: LocalContext,
  name: string,
  { to, message = MESSAGE }: TestOptions,
): Promise<void> {
  const directory = await load(sources);
  const target = targetOf(directory, { name, to });
  const channel = directory.channels.get(target.channel)!; // the target names an existing channel
  const outcome = await channel.send({
    target,
    text: message.slice(0, channel.chunkLimit).toWellFormed(),
    key: crypto.randomUUID(),
    signal: AbortSignal.timeout(SEND_MS),
  });
  const where = `${target.channel} ${target.to}`;
  if (outcome.kind === "sent") return terminal.write(`sent to ${where}\n`);
  const what = outcome.kind === "unknown" ? "may or may not have reached" : "did not reach";
  throw new AppError("upstream", oneLine(`the message ${what} ${where}: ${outcome.reason}`, REASON_CHARS_MAX));
}

async function load(sources: LocalContext["sources"]): Promise<LoadedChannels> {
  const read = readSnapshot(sources, { apiKeys: [] });
  if (!read) throw new AppError("not_found", "there is no configuration file; name one with --config");
  const { channels, folder } = read.snapshot;
  return loadChannels(channels, { fetch, now: Date.now, folder });
}

function targetOf(directory: LoadedChannels, { name, to }: { name: string; to: string | undefined }): Target {
  const { kinds, problems } = directory;
  const id = findChannelId(kinds, name);
  if (id === undefined) {
    const known = kinds.map((kind) => kind.id);
    throw new AppError("bad_request", unknownNameMessage(`unknown channel '${name}'`, name, known));
  }
  const problem = problems.find(({ path }) => path[1] === id);
  if (problem) throw new AppError("bad_request", `${describePath(problem.path)}: ${problem.message}`);
  const target = resolveTarget(directory, { channel: id, to });
  if (!("reason" in target)) return target;
  throw new AppError("bad_request", to === undefined ? `${target.reason}; name a recipient with --to` : target.reason);
}
