/** `hearth hooks replay`: runs a delivery again, or all runs that were given up, or sends all failed replies again. */
import { AppError, parseDuration } from "../../base/index.ts";
import type { CliContext } from "../terminal/context.ts";
import { asText, pathOf } from "./hooks.ts";

export interface ReplayOptions {
  readonly dead?: boolean;
  readonly replies?: boolean;
  readonly path?: string;
  readonly mapping?: string;
  readonly since?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** An answer of the server. */
interface Page {
  readonly found: number;
  readonly replayed: number;
  readonly skipped: readonly { readonly runId: string; readonly reason: string }[];
  readonly next: string | null;
  readonly retryAfterMs: number | null;
}

const NS_PER_MS = 1e6;
/** Reasons that are printed; `--json` has all. */
const REASONS_MAX = 5;

export async function replayHooks(context: CliContext, id: string | undefined, options: ReplayOptions): Promise<void> {
  const { dead = false, replies = false, path, mapping, since, dryRun } = options;
  const asked = [id !== undefined, dead, replies].filter(Boolean).length;
  if (asked !== 1) throw new AppError("bad_request", "expected either an id, --dead or --replies");
  if (id === undefined) return replayAll(context, options);
  const isFiltered = [path, mapping, since, dryRun].some((each) => each !== undefined);
  if (isFiltered) throw new AppError("bad_request", "a filter or --dry-run needs --dead or --replies");
  const replayed = await context.client.post(`${pathOf(id)}/replay`, {});
  if (options.json) return context.terminal.write(asText(replayed));
  context.terminal.write(`delivery ${replayed["deliveryId"]}\n`);
  for (const runId of replayed["runIds"]) context.terminal.write(`run ${runId}\n`);
}

async function replayAll({ client, terminal, nowMs }: CliContext, options: ReplayOptions): Promise<void> {
  const { dead, path, mapping, since, dryRun = false, json } = options;
  const filter = {
    what: dead ? "dead" : "replies",
    ...(path === undefined ? {} : { path }),
    ...(mapping === undefined ? {} : { mapping }),
    since: since === undefined ? 0 : timeOf(since, nowMs()),
  };
  const ask = (more: object): Promise<Page> =>
    client.post("/hooks-admin/replay", { ...filter, ...more }) as unknown as Promise<Page>; // the route's schema
  const { found } = await ask({ dryRun: true });
  const words = dead ? "runs that were given up" : "replies that failed";
  if (dryRun || found === 0) {
    return terminal.write(json ? asText({ found, replayed: 0, skipped: [] }) : `${found} ${words}\n`);
  }
  terminal.note(`replaying ${found} ${words}`);
  let replayed = 0;
  const skipped: Page["skipped"][number][] = [];
  for (let after: string | null = ""; after !== null;) {
    const page: Page = await ask({ after });
    replayed += page.replayed;
    skipped.push(...page.skipped);
    after = page.next;
    if (page.retryAfterMs === null) continue;
    const left = page.found - page.replayed - page.skipped.length;
    terminal.note(`${replayed} replayed, ${left} wait until the queue has room; Ctrl+C leaves them for later`);
    await Bun.sleep(page.retryAfterMs);
  }
  terminal.write(json ? asText({ found, replayed, skipped }) : summary({ replayed, skipped, isDead: dead ?? false }));
}

type Total = Pick<Page, "replayed" | "skipped"> & { readonly isDead: boolean };

/** `replayed 41 runs, 2 skipped:`, then a line for each reason. */
function summary({ replayed, skipped, isDead }: Total): string {
  const [one, many] = isDead ? ["run", "runs"] : ["reply", "replies"];
  const what = `${replayed} ${replayed === 1 ? one : many}`;
  if (skipped.length === 0) return `replayed ${what}\n`;
  const byReason = [...Map.groupBy(skipped, ({ reason }) => reason)];
  const lines = byReason.slice(0, REASONS_MAX).map(([reason, of]) => `  ${of.length} × ${reason} (${of[0]!.runId})\n`);
  return `replayed ${what}, ${skipped.length} skipped:\n${lines.join("")}`;
}

/** Epoch milliseconds of `2h` (ago), or of a date in ISO 8601. */
function timeOf(text: string, nowMs: number): number {
  const ns = parseDuration(text);
  if (ns !== undefined && ns > 0) return Math.round(nowMs - ns / NS_PER_MS);
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) {
    throw new AppError(
      "bad_request",
      `--since: expected a duration such as 2h, or a date such as 2026-01-31T08:00Z, got '${text}'`,
    );
  }
  return at;
}
