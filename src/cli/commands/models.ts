/** `hearth models`: models to pull, and which of them fit this machine. */
import type { Json } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatBytes, formatTable } from "../terminal/format.ts";
import { isMissing } from "../client/missing-model.ts";

const HEADINGS: Readonly<Record<string, string>> = {
  chat: "For everyday questions",
  reasoning: "For mathematics and logic",
  code: "For code",
  vision: "For pictures",
  embedding: "For search (embeddings)",
};

export async function models(
  { client, terminal }: CliContext,
  options: { all?: boolean; json?: boolean },
): Promise<void> {
  const found = await client.get("/api/catalogue").catch((error: unknown) => {
    throw isMissing(error) ? new Error("this server has no catalogue: is it an older one, or another program?") : error;
  });
  if (options.json) return terminal.write(`${JSON.stringify(found, null, 2)}\n`);
  const all = found["models"] as Json[];
  const shown = all.filter(({ fits, installed }) => options.all || installed || fits !== "no");
  const [heading = "", ...lines] = formatTable(["NAME", "SIZE", "FITS", "CAN", "HERE"], shown.map(rowOf)).split("\n");
  const groups = Map.groupBy(shown.keys(), (at) => String(shown[at]?.["purpose"]));
  for (const [purpose, indices] of groups) {
    const rows = [heading, ...Array.from(indices, (at) => lines[at] ?? "")];
    terminal.write(`${HEADINGS[purpose] ?? purpose}\n${rows.map((row) => `  ${row}\n`).join("")}\n`);
  }
  const hidden = all.length - shown.length;
  if (hidden > 0)
    terminal.write(`${hidden} more ${hidden === 1 ? "does" : "do"} not fit this machine: --all shows them.\n`);
  const [first = "NAME"] = found["suggested"];
  terminal.write(`Get one with 'hearth pull ${first}', or talk with it at once: 'hearth run ${first}'.\n`);
  terminal.write(`Sizes are about right, as of ${found["updated"]}.\n`);
}

function rowOf({ name, size, fits, reason, capabilities, installed }: Json): string[] {
  const can = (capabilities as string[]).filter((each) => each !== "completion" && each !== "embedding");
  return [
    name,
    formatBytes(size),
    fits === "yes" ? "yes" : `${fits}: ${reason}`,
    can.join(", "),
    installed ? "installed" : "",
  ];
}
