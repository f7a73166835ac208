/** `hearth approvals`: calls of tools that wait for an operator's decision. */
import { oneLine } from "../../gateway/agent/boundary/index.ts";
import type { Json } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatTable, formatWhen } from "../terminal/format.ts";

interface AsJson {
  readonly json?: boolean;
}

/** Maximum number of characters of the arguments in the table; `--json` prints all. */
const ARGUMENTS_CHARS_MAX = 200;

export async function listApprovals({ client, terminal, nowMs }: CliContext, { json }: AsJson): Promise<void> {
  const found = await client.get("/hooks-admin/approvals");
  if (json) return terminal.write(`${JSON.stringify(found, null, 2)}\n`);
  const list = found["approvals"] as Json[];
  if (list.length === 0) return terminal.note("no call waits for an approval");
  // arguments are a model's text, shown on one line each
  const rows = list.map(({ code, tool, arguments: args, runId, createdAt }) => [
    code,
    oneLine(tool),
    oneLine(JSON.stringify(args), ARGUMENTS_CHARS_MAX),
    runId,
    formatWhen(new Date(createdAt).toISOString(), nowMs()),
  ]);
  terminal.write(formatTable(["CODE", "TOOL", "ARGUMENTS", "RUN", "ASKED"], rows));
  terminal.note("allow a call with 'hearth approvals yes CODE', refuse it with 'hearth approvals no CODE'");
}

export async function decideApproval(
  { client, terminal }: CliContext,
  { code, verdict }: { readonly code: string; readonly verdict: "yes" | "no" },
  { json, digest }: AsJson & { readonly digest?: string },
): Promise<void> {
  const body = { verdict, ...(digest === undefined ? {} : { digest }) };
  const answer = await client.post(`/hooks-admin/approvals/${encodeURIComponent(code)}`, body);
  if (json) return terminal.write(`${JSON.stringify(answer, null, 2)}\n`);
  const { tool } = answer["approval"] as Json;
  terminal.write(
    verdict === "yes" ? `allowed: ${oneLine(tool)} is called once\n` : `refused: ${oneLine(tool)} is not called\n`,
  );
}
