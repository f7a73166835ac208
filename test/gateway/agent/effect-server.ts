/**
 * A tool server on standard input and output whose tools have an effect: a line in a file. Arguments: the file, and how
 * many milliseconds a call takes after its effect.
 */
import { appendFileSync } from "node:fs";

const [, , file = "", delay = "0"] = process.argv;
const send = (message: object): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const schema = { type: "object", properties: { n: { type: "string" }, key: { type: "string" } }, required: ["n"] };
const tools = [
  { name: "once", description: "has an effect", inputSchema: schema },
  { name: "keyed", description: "has an effect once for a key", inputSchema: { ...schema, required: ["n", "key"] } },
  { name: "again", description: "may be repeated", inputSchema: schema, annotations: { idempotentHint: true } },
  { name: "hangs", description: "does not answer", inputSchema: schema },
];

async function answer({ id, method, params }: { id?: number; method: string; params?: any }): Promise<void> {
  if (id === undefined) return;
  if (method === "initialize") {
    const serverInfo = { name: "effects", version: "1" };
    return send({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo } });
  }
  if (method === "tools/list") return send({ id, result: { tools } });
  const { name, arguments: args } = params;
  appendFileSync(file, `${name} ${args.n} ${args.key ?? ""}\n`);
  await Bun.sleep(Number(delay));
  if (name !== "hangs") send({ id, result: { content: [{ type: "text", text: `did ${name} ${args.n}` }] } });
}

let rest = "";
process.stdin.on("data", (chunk) => {
  const lines = (rest + String(chunk)).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) void answer(JSON.parse(line));
});
process.stdin.on("end", () => process.exit());
