/**
 * A tool server on standard input and output that misbehaves as its first argument says. It is written without the
 * library, which would not let it.
 */
import { existsSync, writeFileSync } from "node:fs";

const [, , how = "", file = ""] = process.argv;
const send = (message: object): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const tool = (name: unknown, inputSchema: unknown) => ({ name, inputSchema, description: `is ${String(name)}` });
const OBJECT = { type: "object" };

const LISTS: Record<string, () => object> = {
  lies: () => ({
    tools: [
      tool("good", OBJECT),
      tool("good", OBJECT),
      tool("a tool\nwith lines", OBJECT),
      tool("list", { type: "array" }),
      tool("none", null),
      tool("huge", { ...OBJECT, description: "x".repeat(70_000) }),
      "text",
    ],
  }),
  "no-list": () => ({ tools: "all of them" }),
  "many-tools": () => ({ tools: Array.from({ length: 300 }, (_, i) => tool(`t${i}`, OBJECT)) }),
  "endless-pages": () => ({ tools: [], nextCursor: "more" }),
};

/** Writes for ever, as fast as the reader reads. */
function flood(text: string): void {
  process.stdout.write(text, () => flood(text));
}

function answer({ id, method }: { id?: number; method: string }): void {
  if (how === "hangs-at-once" || id === undefined) return;
  if (method === "initialize") {
    if (how === "dies-at-once") {
      process.stderr.write("no licence found\n");
      process.exit(3);
    }
    const serverInfo = { name: "scripted", version: "1" };
    return send({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo } });
  }
  if (method === "tools/list") return send({ id, result: (LISTS[how] ?? (() => ({ tools: [tool("t", OBJECT)] })))() });
  if (how === "hangs") return;
  if (how === "dies" && !existsSync(file)) {
    writeFileSync(file, "died");
    process.exit(1);
  }
  if (how === "floods") return flood("x".repeat(65_536));
  if (how === "chatters") return flood('{"jsonrpc":"2.0","method":"notifications/message","params":{}}\n'.repeat(100));
  const text =
    how === "long" ? "y".repeat(100_000) : how === "environment" ? Object.keys(process.env).join(" ") : "done";
  send({ id, result: { content: [{ type: "text", text }] } });
  if (how === "twice") send({ id, result: { content: [{ type: "text", text: "done again" }] } });
}

if (how === "stays") {
  writeFileSync(file, String(process.pid));
  setInterval(() => {}, 1000); // also after the end of its input
}

let rest = "";
process.stdin.on("data", (chunk) => {
  const lines = (rest + String(chunk)).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) answer(JSON.parse(line));
});
