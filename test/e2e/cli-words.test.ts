/** The command line's errors about missing or refused input, and their advice. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { HEARTH } from "../program.ts";
import { isolatedEnv, runHearth, startHearth, type Hearth } from "./hearth.ts";
import { sitDownAt } from "./person.ts";

setDefaultTimeout(60_000);

const home = mkdtempSync(join(tmpdir(), "hearth-words-"));
let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(async () => {
  await hearth.stop();
  rmSync(home, { recursive: true });
});

const run = (args: string[], env: Record<string, string> = {}): ReturnType<typeof runHearth> =>
  runHearth(args, { home, env: { HEARTH_HOST: new URL(hearth.url).host, ...env } });

/** Runs a command against a server that gives this answer to every request. */
async function against(
  answer: (path: string) => Response,
  args: string[],
  env: Record<string, string> = {},
): ReturnType<typeof runHearth> {
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: ({ url }) => answer(new URL(url).pathname) });
  return await run(args, { HEARTH_HOST: `127.0.0.1:${server.port}`, ...env });
}

describe("a missing model", () => {
  test.each([["show"], ["rm"], ["stop"], ["push"], ["cp"]])(
    "is an error of %s, which suggests a similar name",
    async (command) => {
      const more = command === "cp" ? ["other"] : [];
      expect(await run([command, "nosuch", ...more])).toEqual({
        code: 1,
        stdout: "",
        stderr: "Error: model 'nosuch' not found: 'hearth list' shows the models that are there\n",
      });
      const near = await run([command, "hearht", ...more]);
      expect(near.stderr).toBe("Error: model 'hearht' not found: did you mean 'hearth'?\n");
    },
  );

  test("is an error of run if its registry does not have it either", async () => {
    const answers: Readonly<Record<string, () => Response>> = {
      "/api/tags": () => Response.json({ models: [{ name: "hearth:latest" }] }),
      "/api/pull": () => new Response('{"error":"pull model manifest: file does not exist"}\n'),
    };
    const missing = (): Response => Response.json({ error: "not found" }, { status: 404 });
    const { code, stderr } = await against((path) => (answers[path] ?? missing)(), ["run", "hearht", "hi"]);
    const words = "Error: model 'hearht' not found, neither here nor in its registry: did you mean 'hearth'?\n";
    expect([code, stderr]).toEqual([1, words]);
  });

  test("is an error of pull, which suggests a name of the catalogue", async () => {
    const answers: Readonly<Record<string, () => Response>> = {
      "/api/catalogue": () => Response.json({ models: [{ name: "qwen3:4b" }] }),
      "/api/pull": () => new Response('{"error":"pull model manifest: file does not exist"}\n'),
    };
    const pull = async (name: string): Promise<string> =>
      (await against((path) => answers[path]!(), ["pull", name])).stderr;
    expect(await pull("qwen4")).toBe(
      "Error: model 'qwen4' not found, its registry does not have it: did you mean 'qwen3'?\n",
    );
    expect(await pull("another/model")).toEndWith("does not have it: 'hearth models' lists models to pull\n");
  });

  test("is an error of pull that names it if its registry wants a login, or has no certificate", async () => {
    const pull = async (error: string): Promise<string> =>
      (await against(() => new Response(`${JSON.stringify({ error })}\n`), ["pull", "a/b"])).stderr;
    expect(await pull("unauthorized: access denied")).toBe(
      "Error: 'a/b': its registry refuses it (unauthorized): it is private, or has another name\n",
    );
    expect(await pull("r.example: no TLS ('insecure' allows it)")).toEndWith("no TLS (--insecure allows it)\n");
  });

  test("is an error of create if it is the base", async () => {
    const made = await runHearth(["create", "x", "-f", "-"], {
      home,
      env: { HEARTH_HOST: new URL(hearth.url).host },
      stdin: "FROM registry.invalid/a/b",
    });
    expect(made.stderr).toContain("Error: model 'registry.invalid/a/b' is not on this machine: ");
  });

  test("makes list and ps say that no model begins with the prefix", async () => {
    const listed = await run(["list", "zzz"]);
    const words = "Error: no model begins with 'zzz': 'hearth list' shows the models that are there\n";
    expect([listed.code, listed.stdout, listed.stderr]).toEqual([1, "", words]);
    const loaded = await run(["ps", "zzz"]);
    expect([loaded.code, loaded.stderr]).toEqual([0, "no model in memory begins with 'zzz'\n"]);
  });
});

describe("a missing argument", () => {
  test.each([
    [["show"], "model", "hearth show [options] <model>", true],
    [["run"], "model", "hearth run [options] [model] [prompt...]", true],
    [["rm"], "models", "hearth rm [options] <models...>", true],
    [["cp", "a"], "destination", "hearth cp [options] <source> <destination>", false],
    [["hooks", "show"], "id", "hearth hooks show [options] <id>", false],
    [["quantize"], "in", "hearth quantize [options] <in> <out> <type>", false],
  ] as const)(
    "is an error of %j with the usage and the models of the server",
    async (args, name, usage, namesModels) => {
      const { code, stdout, stderr } = await run([...args]);
      const lines = [
        `Error: missing argument '${name}'`,
        `Usage: ${usage}`,
        ...(namesModels ? ["Models: hearth"] : []),
      ];
      expect([code, stdout, stderr]).toEqual([1, "", lines.map((line) => `${line}\n`).join("")]);
    },
  );

  test("is an error with the usage if there is no server", async () => {
    const { stderr } = await run(["show"], { HEARTH_HOST: "127.0.0.1:1" });
    expect(stderr).toBe("Error: missing argument 'model'\nUsage: hearth show [options] <model>\n");
  });
});

describe("the error of a client command", () => {
  const refused = (): Response => Response.json({ error: "unauthorized" }, { status: 401 });

  test("names the variable of the key if the server refuses the request", async () => {
    expect((await against(refused, ["list"])).stderr).toBe("Error: this server asks for a key: set HEARTH_API_KEY\n");
    expect((await against(refused, ["list"], { HEARTH_API_KEY: "x" })).stderr).toBe(
      "Error: the server refuses this key: check HEARTH_API_KEY\n",
    );
    expect((await against(refused, ["hooks", "list"])).stderr).toContain("set HEARTH_GATEWAY_TOKEN");
  });

  test("says that the server refuses the address, in the server's words if it has any", async () => {
    const empty = await against(() => new Response(null, { status: 403 }), ["list"]);
    expect(empty.stderr).toMatch(
      /^Error: the server refuses requests to '127\.0\.0\.1:\d+' \(403\): use the name local/,
    );
    const own = await against(() => Response.json({ error: "not from there" }, { status: 403 }), ["list"]);
    expect(own.stderr).toBe("Error: not from there\n");
  });

  test("asks whether it is a Hearth server if the answer is not JSON", async () => {
    const { code, stderr } = await against(() => new Response("<html>"), ["list"]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("does not answer in JSON: is it a Hearth server?\n")]);
  });

  test("asks whether it is a Hearth server if the answer has no models", async () => {
    for (const command of ["list", "ps"]) {
      const { code, stderr } = await against(() => Response.json({ ok: true }), [command]);
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining("without a list of models: is it a Hearth server?\n"),
      ]);
    }
  });

  test("gives an invalid name with the rule", async () => {
    const rule = "expected MODEL, NAMESPACE/MODEL or HOST/NAMESPACE/MODEL, maybe with :TAG";
    expect((await run(["show", "a b"])).stderr).toStartWith(`Error: invalid model name 'a b': ${rule}`);
    expect((await run(["cp", "hearth", "a b"])).stderr).toStartWith(`Error: destination "a b" is invalid: ${rule}`);
    expect((await run(["pull", "127.0.0.1:1/m"])).stderr).toStartWith(`Error: invalid model name '127.0.0.1:1/m': `);
  });

  test("is not all that stop and rm say: they say that they wait for requests", async () => {
    let request = Promise.withResolvers<void>();
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: ({ url }) =>
        (url.endsWith("/api/generate") ? request.promise : Promise.resolve()).then(() => Response.json({})),
    });
    const env = isolatedEnv(home, { HEARTH_HOST: `127.0.0.1:${server.port}` });
    for (const command of ["stop", "rm"]) {
      request = Promise.withResolvers();
      const child = Bun.spawn([...HEARTH, command, "m"], { env, stdin: "ignore", stderr: "pipe" });
      const { value } = await child.stderr.getReader().read();
      const words = "waiting for the running requests of 'm'; 'hearth stop --force m' ends them\n";
      expect(new TextDecoder().decode(value)).toBe(words);
      request.resolve();
      expect(await child.exited).toBe(0);
    }
  });

  test("of rm is the reason alone if the server cannot be asked", async () => {
    const { stderr } = await run(["rm", "m"], { HEARTH_HOST: "127.0.0.1:1" });
    expect(stderr).toStartWith("Error: could not connect");
  });

  test("comes before a file is read for create or run", async () => {
    const file = join(home, "no.gguf");
    await Bun.write(file, "GGUF");
    for (const args of [
      ["create", "x", "-f", "-"],
      ["run", file, "hi"],
    ]) {
      const { stderr } = await runHearth(args, {
        home,
        env: { HEARTH_HOST: "127.0.0.1:1" },
        stdin: `FROM ${file}`,
      });
      expect(stderr).toStartWith("Error: could not connect");
    }
  });

  test("refuses a key that no header can hold, and a folder in place of a Modelfile", async () => {
    expect((await run(["list"], { HEARTH_API_KEY: "ä" })).stderr).toStartWith("Error: HEARTH_API_KEY: expected a key");
    expect((await run(["create", "x", "-f", home])).stderr).toStartWith("Error: expected a Modelfile, got the folder");
  });

  test("refuses standard input that never ends, and names what cannot be written", async () => {
    const shell = async (line: string): Promise<string> => {
      const env = isolatedEnv(home, { HEARTH_HOST: new URL(hearth.url).host });
      const child = Bun.spawn(["sh", "-c", line, "sh", ...HEARTH], { env, stdin: "ignore", stderr: "pipe" });
      return new Response(child.stderr).text();
    };
    expect(await shell('yes | "$@" run hearth')).toBe("Error: standard input: expected at most 64 MiB, got more\n");
    expect(await shell('"$@" list >/dev/full')).toStartWith("Error: cannot write to standard output: ");
  });

  test("names HEARTH_HOST if a server on another machine does not answer", async () => {
    const { stderr } = await run(["list"], { HEARTH_HOST: "http://hearth.invalid:1" });
    expect(stderr).toMatch(/^Error: could not connect .+; check HEARTH_HOST, and that a server runs there\n$/);
  });
});

test("list, ps, show and models print JSON with --json", async () => {
  const json = async (...args: string[]): Promise<any> => JSON.parse((await run([...args, "--json"])).stdout);
  expect((await json("list")).models).toMatchObject([{ name: "hearth:latest", size: expect.any(Number) }]);
  await run(["run", "hearth", ""]); // loads it
  expect((await json("ps")).models).toMatchObject([{ name: "hearth:latest", size_vram: 0 }]);
  expect(await json("show", "hearth")).toMatchObject({ capabilities: expect.arrayContaining(["completion"]) });
  expect((await json("models")).models.length).toBeGreaterThan(20);
});

test("models lists the catalogue by purpose, with sizes and which models fit", async () => {
  const { stdout } = await run(["models", "--all"]);
  expect(stdout).toMatch(/^For everyday questions\n {2}NAME +SIZE +FITS +CAN +HERE\n {2}gemma3:270m +292 MB +/);
  expect(stdout).toMatch(/^ {2}qwen3:8b +5\.2 GB +\S.* tools, thinking$/m);
  expect(stdout).toMatch(/^For search \(embeddings\)$/m);
  expect(stdout).toMatch(/\nGet one with 'hearth pull \S+', or talk with it at once: 'hearth run \S+'\.\n/);
});

test("models is an error if the server has no catalogue", async () => {
  const { code, stderr } = await against(() => new Response("404 page not found", { status: 404 }), ["models"]);
  expect([code, stderr]).toEqual([1, "Error: this server has no catalogue: is it an older one, or another program?\n"]);
});

test("run --format json fails if the answer is not complete JSON", async () => {
  const answers: Readonly<Record<string, string>> = {
    "/api/show": '{"capabilities":["completion"]}',
    "/api/generate":
      '{"response":"{\\"a\\": \\"An ant","done":false}\n{"response":"","done":true,"done_reason":"length"}\n',
  };
  const args = ["run", "some", "--format", "json", "Give me JSON"];
  const { code, stdout, stderr } = await against((path) => new Response(answers[path]), args);
  expect([code, stdout]).toEqual([1, '{"a": "An ant\n']);
  expect(stderr).toMatch(/^Error: the answer is not complete JSON: .+\n$/);
});

test("help lists the commands under headings, in fewer than 60 lines", async () => {
  const { stdout } = await run(["--help"]);
  const headings = [...stdout.matchAll(/^(\S.*):$/gm)].map(([, heading]) => heading);
  expect(headings).toEqual(["Options", "Everyday", "Models", "Tools", "Gateway", "This program", "For developers"]);
  expect(stdout.split("\n").length).toBeLessThan(60);
});

describe("run without a name, at a terminal", () => {
  const sitDown = (): ReturnType<typeof sitDownAt> =>
    sitDownAt(["run"], home, { HEARTH_HOST: new URL(hearth.url).host });

  test("offers models that fit this machine; Enter takes the embedded one", async () => {
    const person = sitDown();
    expect(await person.sees("Number or name (hearth:latest): ")).toBe(true);
    expect(person.screen()).toMatch(
      /Only the small model that ships with Hearth is here\.\r\n.+\r\n {2}1 +\S+ +[\d.]+ [MG]B/,
    );
    await person.types("99\r", /expected a number from 1 to \d, or a name[^]*Number or name/);
    await person.types("\r", ">>> ");
    await person.types("/bye\r", "");
    expect(await person.ended()).toBe(0);
  });

  test("Ctrl+C leaves with 130", async () => {
    const person = sitDown();
    expect(await person.sees("Number or name")).toBe(true);
    person.child.terminal!.write("\x03");
    expect(await person.ended()).toBe(130);
    expect(person.screen()).not.toContain("Error");
  });

  test("pulls the model that is named", async () => {
    const person = sitDown();
    expect(await person.sees("Number or name")).toBe(true);
    await person.types("127.0.0.1:1/none/none\r", /Error: /);
    expect(await person.ended()).toBe(1);
  });

  test("offers the installed models if there are several", async () => {
    await run(["cp", "hearth", "mine"]);
    const person = sitDown();
    expect(await person.sees(/Models that are here:\r\n {2}1 +mine:latest +[\d.]+ MB\r\n[^]*\(mine:latest\): /)).toBe(
      true,
    );
    await person.types("1\r", ">>> ");
    await person.types("/bye\r", "");
    expect(await person.ended()).toBe(0);
    await run(["rm", "mine"]);
  });
});
