/** Text of models, registries and servers reaches a terminal as plain text, in every command. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { runHearth } from "./hearth.ts";
import { sitDownAt } from "./person.ts";

setDefaultTimeout(60_000);

/** Title, clipboard, link, colour, clear, C1, direction, and an overwritten line. */
const EVIL =
  "\x1b]0;title\x07\x1b]52;c;cHduZWQ=\x07\x1b]8;;http://x\x1b\\\x1b[31mred\x1b[2J\x9b31mC1\u202eturned\rOVER EVIL";
/** Sequences that must not arrive. */
const SEQUENCES = ["\x1b]", "\x1b[31m", "\x1b[2J", "\x07", "\rOVER"];
const MARKS = /[\x80-\x9f\u202a-\u202e\u2066-\u2069]/;

const MODEL = {
  name: `m${EVIL}`,
  digest: `d${EVIL}`,
  size: 5,
  size_vram: 0,
  modified_at: "2026-01-01T00:00:00Z",
  expires_at: "2100-01-01",
};
const SHOWN = {
  license: EVIL,
  modelfile: EVIL,
  parameters: `stop ${EVIL}`,
  system: EVIL,
  template: EVIL,
  capabilities: ["completion", EVIL],
  details: { family: EVIL, parameter_size: EVIL, quantization_level: EVIL },
  model_info: { "general.architecture": EVIL, [`key${EVIL}`]: [EVIL] },
  tensors: [{ name: EVIL, type: EVIL, shape: [1] }],
};
const CATALOGUED = { purpose: EVIL, fits: "no", reason: EVIL, capabilities: [EVIL], installed: true };
const CALL = { function: { name: EVIL, arguments: { a: EVIL } } };
const PIECES = ["\x1b", "[31mred\x1b", "]0;title\x07", "\r", "OVER EVIL"]; // cut as tokens may cut it
const ANSWER = [
  ...PIECES.map((content) => ({ message: { content: "", thinking: content }, thinking: content, response: "" })),
  ...PIECES.map((content) => ({ message: { content, tool_calls: [CALL] }, response: content })),
  { done: true, total_duration: 1 },
];
const PROGRESS = [
  { status: EVIL },
  { status: `pulling ${EVIL}`, digest: `sha256:${"0".repeat(64)}`, total: 10, completed: 5 },
  { error: EVIL },
];
const DELIVERY = { id: EVIL, receivedAt: 0, path: EVIL, bodyBytes: 1, runs: [{ state: EVIL, reply: EVIL }] };

const lines = (events: readonly object[]): Response =>
  new Response(events.map((event) => `${JSON.stringify(event)}\n`).join(""));

const ANSWERS: Readonly<Record<string, (body: any) => Response>> = {
  "/api/tags": () => Response.json({ models: [MODEL] }),
  "/api/ps": () => Response.json({ models: [MODEL] }),
  "/api/show": () => Response.json(SHOWN),
  "/api/generate": ({ stream }) => (stream ? lines(ANSWER) : Response.json({ error: EVIL }, { status: 500 })),
  "/api/pull": () => lines(PROGRESS),
  "/api/push": () => lines(PROGRESS),
  "/api/create": () => lines(PROGRESS),
  "/api/catalogue": () => Response.json({ suggested: [EVIL], models: [{ ...MODEL, ...CATALOGUED }] }),
  "/hooks-admin/deliveries": () => Response.json({ deliveries: [DELIVERY], next: EVIL }),
  "/hooks-admin/nodes": () =>
    Response.json({ nodes: [{ name: EVIL, version: EVIL, digest: EVIL, leads: [EVIL], startedAt: 0, seenAt: 0 }] }),
};

const home = mkdtempSync(join(tmpdir(), "hearth-hostile-"));
let server: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  writeFileSync(join(home, "Modelfile"), "FROM m\n");
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const answer = ANSWERS[new URL(request.url).pathname];
      if (!answer) return Response.json({ error: EVIL }, { status: 500 });
      return answer(await request.json().catch(() => ({})));
    },
  });
});
afterAll(() => {
  void server.stop(true);
  rmSync(home, { recursive: true });
});

const COMMANDS: readonly string[][] = [
  ["list"],
  ["ps"],
  ["show", "m"],
  ["show", "m", "--verbose"],
  ["show", "m", "--license"],
  ["show", "m", "--modelfile"],
  ["show", "m", "--parameters"],
  ["show", "m", "--system"],
  ["show", "m", "--template"],
  ["run"],
  ["models"],
  ["run", "m", "hi"],
  ["run", "m", "hi", "--nowordwrap", "--verbose"],
  ["pull", "m"],
  ["push", "m"],
  ["create", "m", "-f", join(home, "Modelfile")],
  ["stop", "m"],
  ["rm", "m"],
  ["cp", "m", "n"],
  ["hooks", "list"],
  ["hooks", "show", "x"],
  ["nodes"],
  ["tokenize", "--model", `${home}/${EVIL}`],
  [EVIL],
  ["list", `--${EVIL}`],
];

test.each(
  COMMANDS.map(
    (args) =>
      [
        args
          .join(" ")
          .replace(home, "")
          .replace(/[^ -~]/g, "?"),
        args,
      ] as const,
  ),
)("hearth %s shows hostile text without its control sequences", async (_, args) => {
  const { child, screen, sees, ended } = sitDownAt(args, home, { HEARTH_HOST: `127.0.0.1:${server.port}` });
  if (args[0] === "tokenize") child.terminal!.write("text\n\x04");
  if (args.length === 1 && args[0] === "run") {
    expect(await sees(/Number or name[^]*: /)).toBe(true);
    child.terminal!.write("\x03");
  }
  await ended();
  expect(screen()).toMatch(/EVIL|OVER/); // it was shown
  expect(SEQUENCES.filter((each) => screen().includes(each))).toEqual([]);
  expect(screen()).not.toMatch(MARKS);
});

test("text on a pipe keeps its bytes", async () => {
  const env = { HEARTH_HOST: `127.0.0.1:${server.port}` };
  const { stdout } = await runHearth(["show", "m", "--system"], { home, env });
  expect(stdout).toBe(`${EVIL}\n`);
  expect((await runHearth(["run", "m", "hi"], { home, env })).stdout).toContain(PIECES.join("").slice(0, 5));
});
