/**
 * The process that a transform runs in: reads calls from its input, one at a time, and writes replies. It has an empty
 * environment, and contains any damage by a module (endless loops, memory use, `process.exit`).
 */
import { writeFileSync } from "node:fs";
import { messageOf } from "../../../../base/index.ts";
import { dieWithParent } from "../../../../base/system.ts";
import { READY, REPLY_CHARS_MAX, type TransformCall, type TransformReply } from "./messages.ts";

const REASON_CHARS_MAX = 500;

type Transform = (input: unknown) => unknown;

async function answer({ id, module, export: name, input }: TransformCall): Promise<TransformReply> {
  const exports: unknown = await import(module);
  const transform = findTransform(exports, name);
  if (!transform) return { id, kind: "failed", reason: `no function is exported as ${name ?? "default or transform"}` };
  if (!input) return { id, kind: "done" };
  // hides the server's address, and modules written for `url` still find path and query
  const url = new URL(`http://localhost/${input.path}?${new URLSearchParams(input.query).toString()}`);
  const output: unknown = await transform({ ...input, url });
  return output === undefined ? { id, kind: "done" } : { id, kind: "done", output };
}

function findTransform(exports: unknown, name: string | undefined): Transform | undefined {
  if (typeof exports !== "object" || exports === null) return undefined;
  const names = name === undefined ? ["default", "transform"] : [name];
  for (const each of names) {
    const found: unknown = Object.getOwnPropertyDescriptor(exports, each)?.value;
    if (typeof found === "function") return found as Transform; // its signature cannot be checked
  }
  return undefined;
}

async function replyTo(line: string): Promise<string> {
  const call = JSON.parse(line) as TransformCall; // `process.ts` wrote the line
  const failed = (reason: string): string =>
    JSON.stringify({ id: call.id, kind: "failed", reason: reason.slice(0, REASON_CHARS_MAX) } satisfies TransformReply);
  try {
    const text = JSON.stringify(await answer(call), plainly);
    return text.length <= REPLY_CHARS_MAX ? text : failed(`it returned more than ${REPLY_CHARS_MAX} characters`);
  } catch (error) {
    return failed(messageOf(error));
  }
}

/** Refuses values that JSON omits, or writes as null or `{}`: they would be lost without an error. */
function plainly(key: string, value: unknown): unknown {
  const kind =
    typeof value === "number" && !Number.isFinite(value)
      ? String(value)
      : value instanceof Map || value instanceof Set || value instanceof Promise
        ? `a ${value.constructor.name}`
        : ["function", "symbol", "bigint"].includes(typeof value)
          ? `a ${typeof value}`
          : undefined;
  if (kind === undefined) return value;
  throw new TypeError(`${key === "output" ? "it returned" : `it returned for '${key}'`} ${kind}, which is not JSON`);
}

/** Under memory pressure the system should kill this process before any other. */
function volunteerForDeath(): void {
  if (process.platform === "linux") writeFileSync("/proc/self/oom_score_adj", "1000");
}

for (const event of ["unhandledRejection", "uncaughtException"] as const) process.on(event, () => process.exit(1));
process.on("SIGINT", () => {}); // a terminal's Ctrl+C reaches this process too, but the server decides when it ends
dieWithParent();
volunteerForDeath();
const say = process.stdout.write.bind(process.stdout);
// a module's output must not look like a reply
for (const name of ["log", "info", "debug", "warn", "error", "trace", "dir", "table"] as const)
  console[name] = () => {};
say(`${READY}\n`);
for await (const line of console) say(`${await replyTo(line)}\n`);
process.exit(0);
