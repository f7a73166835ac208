/** `hearth hooks`: outside text reaches a terminal as plain text. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "../../../src/cli/client/client.ts";
import { listHooks, showHook, testMapping } from "../../../src/cli/commands/hooks.ts";
import type { CliContext } from "../../../src/cli/terminal/context.ts";

const EVIL = "bell\u0007 \u001b[31mred \u202eback \u2067on";

/** The output of a command, for an answer of the server. */
async function printed(answer: object, command: (context: CliContext) => Promise<void>): Promise<string> {
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json(answer) });
  let text = "";
  const client = new Client({ url: `http://127.0.0.1:${server.port}`, apiKey: undefined });
  const terminal = { write: (more: string) => void (text += more) };
  await command({ client, terminal, nowMs: Date.now } as unknown as CliContext); // the used part
  return text;
}

test("show prints an answer without control sequences and direction marks", async () => {
  const delivery = {
    id: "d",
    receivedAt: 0,
    path: "p",
    bodyBytes: 1,
    bodySha256: "x",
    headers: {},
    response: { status: 202 },
  };
  const run = { id: "r", kind: "agent", state: "succeeded", attempts: 1, startedAt: 0, finishedAt: 1, answer: EVIL };
  const hostile = { ...delivery, title: EVIL, runs: [{ ...run, prompt: `first\n${EVIL}` }] };
  const text = await printed(hostile, (context) => showHook(context, "d", {}));
  expect(text).toContain("bell [31mred back on");
  expect(text).toMatch(/^about +bell \[31mred back on$/m);
  expect(text).toContain("prompt\n    first\n    bell");
  expect(text).not.toMatch(/[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069]/u);
});

test("list prints a path without control sequences, and the states of the run and its reply", async () => {
  const delivery = { id: "d", receivedAt: 0, path: EVIL, bodyBytes: 1, title: EVIL };
  const runs = [
    { state: "succeeded", reply: "failed" },
    { state: "succeeded", reply: "failed" },
    { state: "failed", reply: "none" },
  ];
  const none = { state: undefined, path: undefined, mapping: undefined, limit: undefined, before: undefined };
  const text = await printed({ deliveries: [{ ...delivery, runs }] }, (context) => listHooks(context, none));
  expect(text).toContain("/bell [31mred back on");
  expect(text).toContain("2 × succeeded, reply failed; failed");
  expect(text).not.toMatch(/[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069]/u);
});

/** The output of `hearth hooks test`, for an answer of the server. */
async function tested(said: object): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "hearth-hooks-"));
  const file = join(folder, "body.json");
  writeFileSync(file, "{}");
  const answer = { mapping: "m", reaches: "m", actions: [], warnings: [], ...said };
  try {
    return await printed(answer, (context) => testMapping(context, { mapping: "m", file }, { header: [], query: [] }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("test prints a prompt without control sequences", async () => {
  const actions = [{ action: { kind: "agent" }, prompt: `${EVIL}\nsecond line` }];
  expect(await tested({ outcome: "actions", actions })).toEndWith("    bell� �[31mred �back �on\n    second line\n");
});

test("test prints the status that the sender gets if nothing runs", async () => {
  const answer = { status: 204, body: "" };
  const reason = "match.when leaves this request out";
  expect(await tested({ outcome: "nothing", answer })).toBe("nothing to do (204)\n");
  expect(await tested({ outcome: "nothing", answer, reason })).toBe(`nothing to do (204): ${reason}\n`);
  expect(await tested({ outcome: "answered", answer: { status: 200, body: `c${EVIL}` } })).toBe(
    "a check of the address, answered 200:\n    cbell� �[31mred �back �on\n",
  );
  expect(await tested({ outcome: "actions", reaches: null })).toBe(
    "note: a request like this reaches no mapping (404)\n",
  );
});
