/**
 * `hearth hooks list`, `show`, `cancel`, `pause`, `resume` and `test`: operator commands for deliveries and
 * mappings.
 */
import { messageOf } from "../../base/index.ts";
import { oneLine, TURNS } from "../../gateway/agent/boundary/index.ts";
import { readBodyFile } from "../client/body-file.ts";
import type { Json } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatBytes, formatTable, formatWhen } from "../terminal/format.ts";

interface AsJson {
  readonly json?: boolean;
}

export type ListOptions = AsJson &
  Readonly<Record<"state" | "path" | "mapping" | "limit" | "before", string | undefined>>;

const when = (ms: number, now: number): string => formatWhen(new Date(ms).toISOString(), now);
/** Maximum number of characters of a title in a table. */
const TITLE_CHARS_MAX = 48;
export const pathOf = (id: string): string => `/hooks-admin/deliveries/${encodeURIComponent(id)}`;
export const asText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

export async function listHooks({ client, terminal, nowMs }: CliContext, options: ListOptions): Promise<void> {
  const { json, ...filters } = options;
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) query.set(name, String(value));
  const page = await client.get(`/hooks-admin/deliveries?${query}`);
  if (json) return terminal.write(asText(page));
  const rows = (page["deliveries"] as Json[]).map((each) => [
    each["id"],
    when(each["receivedAt"], nowMs()),
    oneLine(`/${each["path"]}`, 400),
    oneLine(each["mappingId"] ?? "", 400),
    oneLine(each["title"] ?? "", TITLE_CHARS_MAX),
    formatBytes(each["bodyBytes"]),
    runsInBrief(each["runs"]),
  ]);
  terminal.write(formatTable(["DELIVERY", "RECEIVED", "PATH", "MAPPING", "ABOUT", "SIZE", "RUNS"], rows));
  if (page["next"]) terminal.note(`more: --before ${page["next"]}`);
}

/** `succeeded, reply sent`; for several runs, the number of each. */
function runsInBrief(runs: readonly Json[]): string {
  const brief = runs.map(({ state, reply }) => (reply === "none" ? state : `${state}, reply ${reply}`));
  const groups = Map.groupBy(brief, (text) => text);
  return [...groups].map(([text, { length }]) => (length === 1 ? text : `${length} × ${text}`)).join("; ");
}

export async function showHook({ client, terminal, nowMs }: CliContext, id: string, { json }: AsJson): Promise<void> {
  const found = await client.get(pathOf(id));
  if (json) return terminal.write(asText(found));
  const facts: [string, unknown][] = [
    ["delivery", found["id"]],
    ["received", `${new Date(found["receivedAt"]).toISOString()} (${when(found["receivedAt"], nowMs())})`],
    ["path", `/${found["path"]}`],
    ["mapping", found["mappingId"]],
    ["about", found["title"]],
    ["credential", `${found["authKind"]} ${found["authId"]}`],
    ["sender's id", found["providerDeliveryId"]],
    ["idempotency key", found["idempotencyKey"]],
    ["trace", found["headers"].traceparent],
    ["trace state", found["headers"].tracestate],
    ["body", `${formatBytes(found["bodyBytes"])}, sha256 ${found["bodySha256"]}`],
    ["replay of", found["replayOf"]],
    ["answered", found["response"].status],
  ];
  terminal.write(table(facts));
  for (const run of found["runs"] as Json[]) {
    terminal.write(`\n${table(factsOfRun(run, nowMs()))}`);
    if (run["prompt"]) terminal.write(`prompt\n${indented(run["prompt"])}\n`);
  }
}

/** Outside text is shown on one line: it must not move a terminal's cursor. */
const table = (facts: readonly [string, unknown][]): string =>
  formatTable(
    [],
    facts
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => [name, oneLine(String(value), 400)]),
  );

const factsOfRun = (run: Json, now: number): [string, unknown][] => [
  ["run", run["id"]],
  ["kind", run["kind"]],
  ["state", `${run["state"]}, attempt ${run["attempts"]}`],
  ["session", run["sessionKey"]],
  ["began", run["startedAt"] === null ? null : when(run["startedAt"], now)],
  ["took", took(run)],
  ["reason", run["reason"]],
  ["model", run["model"]],
  ["answer", run["answer"]],
  ["reply", [run["reply"], run["replyReason"]].filter(Boolean).join(": ")],
  ["callback", run["callback"]],
];

const took = ({ startedAt, finishedAt }: Json): string | null =>
  startedAt === null || finishedAt === null ? null : `${((finishedAt - startedAt) / 1000).toFixed(1)} s`;

export async function cancelHook({ client, terminal }: CliContext, id: string, { json }: AsJson): Promise<void> {
  const { runs } = await client.post(`${pathOf(id)}/cancel`, {});
  if (json) return terminal.write(asText({ runs }));
  terminal.write(
    formatTable(
      ["RUN", "RESULT"],
      (runs as Json[]).map(({ runId, result }) => [runId, result]),
    ),
  );
}

/** Pauses all nodes until `resume`. */
export async function pauseHooks(
  { client, terminal }: CliContext,
  isToPause: boolean,
  { json }: AsJson,
): Promise<void> {
  const answer = await client.post(`/hooks-admin/${isToPause ? "pause" : "resume"}`, {});
  if (json) return terminal.write(asText(answer));
  terminal.write(
    answer["paused"]
      ? "paused: no run starts until 'hearth hooks resume', even after a restart; new webhooks wait\n"
      : "resumed: runs start again\n",
  );
}

export type TestOptions = AsJson & { readonly header: readonly string[]; readonly query: readonly string[] };

/** Throws if the mapping fails, or its actions would be refused. */
export async function testMapping(
  { client, terminal }: CliContext,
  target: { readonly mapping: string; readonly file: string },
  options: TestOptions,
): Promise<void> {
  const headers = pairs(options.header, ":", "--header");
  const run = await client.post(`/hooks-admin/mappings/${encodeURIComponent(target.mapping)}/test`, {
    body: await readBody(target.file, headers),
    headers,
    query: pairs(options.query, "=", "--query"),
  });
  const actions = run["actions"] as Json[];
  if (options.json) terminal.write(asText(run));
  else describeRun(run, actions).forEach((line) => terminal.write(`${line}\n`));
  if (run["outcome"] === "failed") throw new Error(`the mapping fails: ${run["reason"]}`);
  const refused = run["outcome"] === "refused" ? run["reason"] : actions.find((each) => each["refused"])?.["refused"];
  if (refused) throw new Error(`the request would be refused: ${refused}`);
}

function describeRun(run: Json, actions: readonly Json[]): string[] {
  const { mapping, reaches, answer, reason } = run;
  const elsewhere = reaches === null ? "no mapping (404)" : `mapping '${reaches}', which comes first`;
  return [
    ...(reaches === mapping ? [] : [`note: a request like this reaches ${elsewhere}`]),
    ...(run["outcome"] === "nothing" ? [[`nothing to do (${answer.status})`, reason].filter(Boolean).join(": ")] : []),
    ...(run["outcome"] === "answered"
      ? [`a check of the address, answered ${answer.status}:`, indented(answer.body)]
      : []),
    ...(run["warnings"] as string[]).map((warning) => `warning: ${warning}`),
    ...actions.flatMap(({ action, prompt, reply }) => [
      `${action.kind}, ${action.kind === "wake" ? action.mode : `session ${action.sessionKey ?? "of its own"}`}`,
      ...(reply ? [`reply: ${reply.reason ?? `${reply.channel} ${reply.to}`}`] : []),
      indented(prompt),
    ]),
  ];
}

/** Control characters in outside text must not reach a terminal. */
const indented = (text: string): string =>
  text
    .replace(/[^\P{Cc}\n\t]/gu, "�")
    .replace(TURNS, "�")
    .replace(/^/gm, "    ");

/** In base64. Parses a JSON body first, because only here the error can be located. */
async function readBody(file: string, headers: Readonly<Record<string, string>>): Promise<string> {
  const bytes = await readBodyFile(file);
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "json";
  const text = new TextDecoder().decode(bytes);
  try {
    if (/\bjson\b/i.test(type) && text.trim() !== "") JSON.parse(text);
  } catch (error) {
    throw new Error(`${file}: expected JSON: ${messageOf(error)}`, { cause: error });
  }
  return Buffer.from(bytes).toString("base64");
}

function pairs(texts: readonly string[], separator: string, flag: string): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf(separator);
      if (at <= 0) throw new Error(`${flag}: expected 'name${separator}value', got '${text}'`);
      return [text.slice(0, at).trim(), text.slice(at + separator.length).trim()];
    }),
  );
}
