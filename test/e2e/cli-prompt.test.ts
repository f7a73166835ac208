/** The prompt of a conversation: the editor, earlier messages, and the search through them. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { sitDownAt, type Person } from "./person.ts";

setDefaultTimeout(60_000);

const home = mkdtempSync(join(tmpdir(), "hearth-prompt-"));
let server: ReturnType<typeof Bun.serve>;
/** The model's last prompt. */
let asked: string[] = [];
beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = (await request.json()) as { messages?: { content: string }[] };
      const { pathname } = new URL(request.url);
      if (pathname === "/api/show") return Response.json({ capabilities: ["completion"] });
      if (pathname !== "/api/chat") return Response.json({});
      asked.push(body.messages?.at(-1)?.content ?? "");
      return new Response('{"message":{"content":"Answered."},"done":true}\n');
    },
  });
});
beforeEach(() => void (asked = []));
afterAll(() => {
  void server.stop(true);
  rmSync(home, { recursive: true });
});

/** A program that plays an editor. */
function editor(script: string): string {
  const path = join(home, "editor");
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

async function sitDown(env: Record<string, string> = {}): Promise<Person> {
  const person = sitDownAt(["run", "m"], home, { HEARTH_HOST: `127.0.0.1:${server.port}`, ...env });
  expect(await person.sees(">>> ")).toBe(true);
  return person;
}

async function leave(person: Person): Promise<void> {
  person.child.terminal!.write("\x15\x04");
  expect(await person.ended()).toBe(0);
}

const ANSWERED = /Answered\.\r\n[^]*>>> /;

test("Up recalls a message of several lines as one, in this conversation and the next", async () => {
  const first = await sitDown();
  await first.types('"""one\r', "... ");
  await first.types('two\rthree"""\r', ANSWERED);
  await first.types("plain\r", ANSWERED);
  await first.types("\x1b[A\x1b[A", /"""one\r\n.*two\r\n.*three"""/);
  await first.types("\r", ANSWERED);
  await leave(first);
  const next = await sitDown();
  await next.types("\x1b[A", /"""one\r\n.*two\r\n.*three"""/);
  await next.types("\r", ANSWERED);
  await leave(next);
  expect(asked).toEqual(["one\ntwo\nthree", "plain", "one\ntwo\nthree", "one\ntwo\nthree"]);
});

test("Ctrl+R finds an earlier message, which can be sent, edited or left", async () => {
  const person = await sitDown({ HEARTH_HOME: join(home, "search") });
  await person.types("tell me of foxes\r", ANSWERED);
  await person.types("count to three\r", ANSWERED);
  await person.types("unsent\x12fox", "(search) fox: tell me of foxes");
  await person.types("\x1b", />>> unsent/);
  await person.types("\x12fox", "tell me of foxes");
  await person.types("\x1b[D", />>> tell me of foxes/);
  await person.types("\x05!\r", ANSWERED);
  await person.types("\x12count\r", ANSWERED);
  await leave(person);
  expect(asked).toEqual(["tell me of foxes", "count to three", "tell me of foxes!", "count to three"]);
});

test("Ctrl+G writes the line in the editor", async () => {
  const log = join(home, "log");
  const person = await sitDown({ VISUAL: `${editor(`cat "$2" > ${log}; printf 'first\\nsecond\\n' > "$2"`)} --wait` });
  await person.types("a draft\x07", /"""first\r\n.*second"""/);
  expect(readFileSync(log, "utf8")).toBe("a draft\n");
  await person.types("\r", ANSWERED);
  await person.types('"""open\r', "... ");
  await person.types("quote\x07", /"""first\r\n.*second"""/);
  expect(readFileSync(log, "utf8")).toBe("open\nquote\n");
  await person.types("\r", ANSWERED);
  await leave(person);
  expect(asked).toEqual(["first\nsecond", "first\nsecond"]);
});

test("an editor that fails, or is not set, leaves the line unchanged", async () => {
  const failing = await sitDown({ EDITOR: editor("exit 3") });
  await failing.types("kept\x07", /Error: '.*' ended with 3: the message is unchanged\r\n[^]*>>> kept/);
  await failing.types("\r", ANSWERED);
  await leave(failing);
  const none = await sitDown();
  await none.types("kept\x07", /Error: no editor is set: set VISUAL or EDITOR[^]*>>> kept/);
  await leave(none);
  expect(asked).toEqual(["kept"]);
});
