/** The commands that talk to a server, against a real one, as separate processes. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { encodeGguf } from "../engine/formats/gguf/fixture.ts";
import { eventually, isolatedEnv, runHearth, startHearth, type Hearth } from "./hearth.ts";
import { HEARTH } from "../program.ts";
import { sitDownAt, type Person } from "./person.ts";

setDefaultTimeout(120_000);

const GGUF = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
const home = mkdtempSync(join(tmpdir(), "hearth-cli-"));
let hearth: Hearth;

beforeAll(async () => void (hearth = await startHearth()));
afterAll(async () => {
  await hearth.stop();
  rmSync(home, { recursive: true, force: true });
});

const run = (args: string[], more: { stdin?: string; env?: Record<string, string> } = {}) =>
  runHearth(args, { home, stdin: more.stdin ?? "", env: { HEARTH_HOST: new URL(hearth.url).host, ...more.env } });

describe("models", () => {
  test("list shows name, id, size and time; a prefix filters without regard to case", async () => {
    const { stdout, code } = await run(["list"]);
    expect(code).toBe(0);
    expect(stdout.split("\n")[0]).toMatch(/^NAME +ID +SIZE +MODIFIED$/);
    expect(stdout).toMatch(/^hearth:latest +[0-9a-f]{12} +\d\.\d MB +.+ ago$/m);
    expect((await run(["ls", "HEA"])).stdout).toContain("hearth:latest");
    expect((await run(["ls", "zzz"])).stdout).not.toContain("hearth");
  });

  test("show prints tables, or one part unchanged", async () => {
    const { stdout } = await run(["show", "hearth"]);
    expect(stdout).toMatch(/^ {2}Model\n {4}architecture +llama\n/);
    expect(stdout).toMatch(/ {2}Capabilities\n {4}(tools|completion)/);
    expect((await run(["show", "hearth", "--parameters"])).stdout).toContain("temperature");
    expect((await run(["show", "hearth", "--modelfile"])).stdout).toContain("FROM ");
    expect((await run(["show", "hearth", "--verbose"])).stdout).toContain("token_embd.weight");
    const both = await run(["show", "hearth", "--system", "--license"]);
    expect([both.code, both.stderr]).toEqual([
      1,
      "Error: only one of '--license', '--modelfile', '--parameters', '--system', or '--template' can be specified\n",
    ]);
  });

  test("cp copies a model, and rm removes models up to the first missing one", async () => {
    expect((await run(["cp", "hearth", "copied"])).stdout).toBe("copied 'hearth' to 'copied'\n");
    const removed = await run(["rm", "copied", "missing", "hearth"]);
    expect(removed).toMatchObject({
      code: 1,
      stdout: "deleted 'copied'\n",
      stderr: "Error: model 'missing' not found: 'hearth list' shows the models that are there\n",
    });
    expect((await run(["list"])).stdout).toContain("hearth:latest");
  });

  test("ps lists what is loaded, and stop ends it", async () => {
    await run(["run", "hearth", "hi", "--keepalive", "10m"]);
    expect((await run(["ps"])).stdout).toMatch(
      /^hearth:latest +[0-9a-f]{12} +\d+ MB +100% CPU +\d+ +\d minutes from now$/m,
    );
    await run(["run", "hearth", "hi", "--keepalive", "-1"]);
    expect((await run(["ps"])).stdout).toMatch(/^hearth:latest .* Forever$/m);
    expect(await run(["stop", "hearth"])).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(await eventually(async () => !(await run(["ps"])).stdout.includes("hearth:latest"))).toBe(true);
  });
});

test("--version names the API's version; ollama's commands are answered; help explains hearth without a command", async () => {
  expect((await run(["-v"])).stdout).toMatch(/^hearth \d+\.\d+\.\d+ \(speaks the API of Ollama \d+\.\d+\.\d+\)\n$/);
  expect((await run(["show", "hearth", "-v"])).stdout).toContain("token_embd.weight");
  expect(await run(["signin"])).toMatchObject({ code: 1, stderr: expect.stringContaining("nothing to sign in to") });
  expect((await run(["start", "--help"])).stdout).toContain("start the server");
  expect((await run(["--help"])).stdout).toContain("Without a command, hearth serves");
});

test("the proxy of HTTP_PROXY is not used for a server on this machine", async () => {
  for (const name of ["HTTP_PROXY", "http_proxy"]) {
    expect(await run(["list"], { env: { [name]: "http://127.0.0.1:9" } })).toMatchObject({ code: 0, stderr: "" });
  }
});

describe("create", () => {
  test("makes a model from another, with every instruction of a Modelfile", async () => {
    const text = 'FROM hearth\nSYSTEM """You are\na fox."""\nPARAMETER stop one\nPARAMETER stop two\nMESSAGE user hi\n';
    writeFileSync(join(home, "Modelfile"), text);
    const { code, stderr } = await run(["create", "fox", "-f", join(home, "Modelfile")]);
    expect([code, stderr.trimEnd().split("\n").at(-1)]).toEqual([0, "success"]);
    expect((await run(["show", "fox", "--system"])).stdout).toBe("You are\na fox.\n");
    expect((await run(["show", "fox", "--parameters"])).stdout).toMatch(/stop +"one"\n/);
    await run(["rm", "fox"]);
  });

  test("uploads a local file and makes a model from it", async () => {
    writeFileSync(join(home, "File"), `FROM ${GGUF}\n`);
    const other = await startHearth();
    try {
      const env = { HEARTH_HOST: other.url };
      await run(["rm", "hearth"], { env });
      expect((await run(["create", "mine", "-f", join(home, "File")], { env })).code).toBe(0);
      expect((await run(["run", "mine", "hello"], { env })).code).toBe(0);
    } finally {
      await other.stop();
    }
  });

  test("reads a Modelfile from standard input, and takes two files of one name", async () => {
    const projector = encodeGguf({
      metadata: { "general.architecture": "clip", "general.type": "mmproj" },
      tensors: [],
    });
    for (const [name, bytes] of Object.entries({ text: readFileSync(GGUF), image: projector })) {
      mkdirSync(join(home, name));
      writeFileSync(join(home, name, "model.gguf"), bytes);
    }
    const stdin = `FROM ${join(home, "image/model.gguf")}\nFROM ${join(home, "text/model.gguf")}\n`;
    const { code, stderr } = await run(["create", "two", "-f", "-"], { stdin });
    expect([code, stderr.trimEnd().split("\n").at(-1)]).toEqual([0, "success"]);
    expect((await run(["show", "two", "--modelfile"])).stdout.match(/^FROM /gm)).toHaveLength(2);
    await run(["rm", "two"]);
  });

  test("says which line or file is wrong", async () => {
    writeFileSync(join(home, "Bad"), "FROM hearth\nFLAVOUR sweet\n");
    expect((await run(["create", "bad", "-f", join(home, "Bad")])).stderr).toContain(
      "(line 2): command must be one of",
    );
    writeFileSync(join(home, "Bad"), "FROM ./nothing.gguf\n");
    expect((await run(["create", "bad", "-f", join(home, "Bad")])).stderr).toBe(
      `Error: no such file: ${join(home, "nothing.gguf")}\n`,
    );
    for (const path of [String.raw`.\none.gguf`, String.raw`..\none.gguf`, String.raw`C:\none.gguf`, "C:/none.gguf"]) {
      writeFileSync(join(home, "Bad"), `FROM ${path}\n`);
      expect((await run(["create", "bad", "-f", join(home, "Bad")])).stderr).toContain("Error: no such file: ");
    }
    writeFileSync(join(home, "x-00001-of-00002.gguf"), "GGUF");
    writeFileSync(join(home, "Bad"), "FROM ./x-00001-of-00002.gguf\n");
    expect((await run(["create", "bad", "-f", join(home, "Bad")])).stderr).toBe(
      `Error: no such file: ${join(home, "x-00002-of-00002.gguf")}, a part of ${join(home, "x-00001-of-00002.gguf")}\n`,
    );
    expect((await run(["create", "bad", "-f", join(home, "none")])).stderr).toContain("no Modelfile");
    expect((await run(["create", "bad", "-f", GGUF])).stderr).toBe(
      `Error: expected a Modelfile, got the weights ${GGUF}: a Modelfile with the line 'FROM ${GGUF}' names them\n`,
    );
    Bun.spawnSync(["mkfifo", join(home, "pipe.gguf")]);
    writeFileSync(join(home, "Bad"), "FROM ./pipe.gguf\n");
    expect((await run(["create", "bad", "-f", join(home, "Bad")])).stderr).toBe(
      `Error: expected a file, got a pipe or a device: ${join(home, "pipe.gguf")}\n`,
    );
    truncateSync(join(home, "Bad"), 17 * 1024 * 1024);
    expect((await run(["create", "bad", "-f", join(home, "Bad")])).stderr).toContain("at most 16777216 bytes");
    writeFileSync(join(home, "Bad"), "FROM hearth\n");
    const undrafted = await run(["create", "bad", "-f", join(home, "Bad"), "--draft-quantize", "q8_0"]);
    expect(undrafted.stderr).toBe("Error: --draft-quantize requires a DRAFT model\n");
  });
});

test("Ctrl+C ends a create while a large file is hashed, and the progress bar moves", async () => {
  const big = join(home, "big.gguf");
  writeFileSync(big, "GGUF");
  truncateSync(big, 256 * 2 ** 30); // holes, read faster than any disk
  writeFileSync(join(home, "Big"), `FROM ${big}\n`);
  const person = sitDown(["create", "big", "-f", join(home, "Big")]);
  try {
    expect(await person.sees(/hashing big\.gguf .+ [MG]B\/274 GB/)).toBe(true);
    person.child.terminal!.write("\x03");
    expect(await person.sees("stopped; what was uploaded is kept: run the same command again")).toBe(true);
    expect(await person.ended()).toBe(130);
  } finally {
    person.child.kill("SIGKILL");
    rmSync(big);
  }
});

describe("run with a prompt", () => {
  test("prints the answer; standard input precedes the prompt; statistics go to standard error", async () => {
    const { stdout, stderr, code } = await run(["run", "hearth", "--verbose", "who", "are you?"], { stdin: "Hello!" });
    expect(code).toBe(0);
    expect(stdout.trim().length).toBeGreaterThan(3);
    expect(stderr).toMatch(/^\ntotal duration: +\S+\n.*eval rate: +[\d.]+ tokens\/s\n$/s);
  });

  test("--think does not take the question as its level, and an unknown level is refused", async () => {
    for (const think of ["--think", "--think=high"]) {
      const { stderr, code } = await run(["run", "hearth", think, "Hello! Who are you?"]);
      expect([code, stderr]).toEqual([1, 'Error: "hearth" does not support thinking\n']);
    }
    expect((await run(["run", "hearth", "--think=deeply", "hi"])).stderr).toContain("expected true, false, low");
  });

  test("--format json gives JSON", async () => {
    writeFileSync(join(home, "Calm"), "FROM hearth\nPARAMETER temperature 0\n"); // it may otherwise run for long
    await run(["create", "calm", "-f", join(home, "Calm")]);
    const { stdout } = await run(["run", "calm", "--format", "json", "Give me JSON"]);
    expect(typeof JSON.parse(stdout)).toBe("object");
    await run(["rm", "calm"]);
  });

  test("pulls a missing model, and fails with one line if its registry does not answer", async () => {
    const { code, stderr } = await run(["run", "127.0.0.1:1/none/none", "--insecure", "hi"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/(^|\n)Error: .+\n$/);
  });
});

test("pull and run fail if the server's reply ends before its last line", async () => {
  const answers = {
    "/api/pull": '{"status":"pulling manifest"}\n',
    "/api/show": '{"capabilities":["completion"]}',
    "/api/generate": '{"response":"Once upon","done":false}\n',
  } as Readonly<Record<string, string>>;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => new Response(answers[new URL(url).pathname]),
  });
  const env = { HEARTH_HOST: `127.0.0.1:${server.port}` };
  try {
    const pulled = await run(["pull", "some"], { env });
    expect([pulled.code, pulled.stderr]).toEqual([
      1,
      expect.stringContaining("Error: the server's reply ended before 'success'\n"),
    ]);
    const answered = await run(["run", "some", "go on"], { env });
    expect([answered.code, answered.stdout]).toEqual([1, "Once upon\n"]);
    expect(answered.stderr).toContain("Error: the server's reply ended before the answer did\n");
  } finally {
    await server.stop(true);
  }
});

test("without a server, an error of one line says how to start one", async () => {
  const { code, stderr } = await run(["list"], { env: { HEARTH_HOST: "127.0.0.1:1" } });
  const line = "Error: could not connect to a hearth server at http://127.0.0.1:1; start one with 'hearth serve'\n";
  expect([code, stderr]).toEqual([1, line]);
});

test("run of a missing model says that it is not here, and why its registry cannot be reached", async () => {
  const name = "registry.invalid/x/nope";
  const why = "cannot find registry.invalid: is this machine online? (HTTPS_PROXY is read)\n";
  const { code, stderr } = await run(["run", name, "hi"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(`Error: model '${name}' is not on this machine: ${why}`)]);
  const pulled = await run(["pull", name]);
  expect([pulled.code, pulled.stderr]).toEqual([1, expect.stringContaining(`Error: ${why}`)]);
});

test("run of a misspelled name suggests a similar model if the registry cannot be reached", async () => {
  expect((await run(["cp", "hearth", "registry.invalid/x/noble"])).code).toBe(0);
  const { code, stderr } = await run(["run", "registry.invalid/x/nolbe", "hi"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("; did you mean 'registry.invalid/x/noble'?\n")]);
  expect((await run(["rm", "registry.invalid/x/noble"])).code).toBe(0);
});

test("a command whose reader closes the pipe ends without an error", async () => {
  const env = isolatedEnv(home, { HEARTH_HOST: new URL(hearth.url).host });
  const child = Bun.spawn(["bash", "-c", `'${HEARTH.join("' '")}' show hearth --verbose | head -1`], {
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  expect([await new Response(child.stdout).text(), await new Response(child.stderr).text()]).toEqual(["  Model\n", ""]);
});

const sitDown = (args: string[], env: Record<string, string> = {}): Person =>
  sitDownAt(args, home, { HEARTH_HOST: new URL(hearth.url).host, ...env });

describe("run at a terminal", () => {
  test("a conversation has answers, commands and messages of several lines, and ends with /bye", async () => {
    const person = sitDown(["run", "hearth"]);
    expect(await person.sees(">>> ")).toBe(true);
    await person.types("Hello! Who are you?\r", /\n[^>\n]*Hearth[^\n]*\r\n[^]*>>> /);
    await person.types("/set system You are a fox.\r", /Set system message\.[^]*>>> /);
    await person.types("/set parameter temperature 0\r", /Set parameter 'temperature' to '0'[^]*>>> /);
    await person.types(
      "/set parameter temperature warm\r",
      /Error: temperature: invalid float value \[warm\]: expected a number[^]*>>> /,
    );
    await person.types("/show system\r", /You are a fox\.[^]*>>> /);
    await person.types("/set verbose\r", /verbose[^]*>>> /);
    await person.types('"""tell me\r', "... ");
    await person.types('a story"""\r', /eval rate[^]*>>> /);
    await person.types("/save talk\r", /Created new model 'talk'[^]*>>> /);
    await person.types("/clear\r", /Cleared session context[^]*>>> /);
    await person.types("/wat\r", /Error: unknown command '\/wat'[^]*>>> /);
    await person.types("/?\r", /\/bye[^]*>>> /);
    person.child.terminal!.write("/bye\r");
    expect(await person.ended()).toBe(0);
    const saved = (await run(["show", "talk", "--modelfile"])).stdout;
    expect(saved).toContain("SYSTEM You are a fox.");
    expect(saved).toContain("MESSAGE user Hello! Who are you?");
    expect(saved).toContain('MESSAGE user """tell me\na story"""'.replaceAll('"""', '"'));
    await run(["rm", "talk"]);
  });

  test("/set takes a system text of several lines, quoted stop texts and levels of thinking; lines typed ahead wait", async () => {
    const person = sitDown(["run", "hearth", "--format", '{ "type": "integer" }']);
    expect(await person.sees(">>> ")).toBe(true);
    await person.types('/set system """You are\r', "... ");
    await person.types('a fox.\r"""\r', /Set system message\.[^]*>>> /);
    await person.types('/set parameter stop "the end" STOP\r', /Set parameter 'stop'[^]*>>> /);
    await person.types("/set think hot\r", /Error: expected one of true, [^]*got 'hot'[^]*>>> /);
    await person.types("How many?\r/set quiet\r/save ahead\r", /\d\r\n[^]*Set 'quiet'[^]*Created new model 'ahead'/);
    person.child.terminal!.write("\x04");
    await person.ended();
    const saved = (await run(["show", "ahead", "--modelfile"])).stdout;
    expect(saved).toContain('SYSTEM "You are\na fox."\n');
    expect(saved).toContain("PARAMETER stop the end\nPARAMETER stop STOP\n");
    await run(["rm", "ahead"]);
  });

  test("Ctrl+Z suspends the conversation, and fg resumes it with the line as typed", async () => {
    const person = sitDown(["run", "hearth"]);
    expect(await person.sees(">>> ")).toBe(true);
    await person.types("/set qu", "/set qu");
    await person.types("\x1a", "");
    const isBack = (): boolean => {
      process.kill(person.child.pid, "SIGCONT"); // like `fg`; before it has paused, this has no effect
      return person.screen().includes("\x1b[?2004h");
    };
    expect(await eventually(isBack)).toBe(true);
    await person.types("iet\r", /Set 'quiet' mode\.[^]*>>> /);
    person.child.terminal!.write("\x04");
    expect(await person.ended()).toBe(0);
  });

  test("an unwritable history is reported once, and the conversation continues", async () => {
    const person = sitDown(["run", "hearth"], { HEARTH_HOME: "/dev/null/home" });
    expect(await person.sees(">>> ")).toBe(true);
    await person.types("/set quiet\r", /Warning: prompts cannot be saved: [^]*Set 'quiet' mode\.[^]*>>> /);
    await person.types("/set verbose\r", /Set 'verbose' mode\.[^]*>>> /);
    expect(person.screen()).not.toContain("Warning");
    person.child.terminal!.write("\x04");
    expect(await person.ended()).toBe(0);
  });

  test("a paste of several lines is one message", async () => {
    const person = sitDown(["run", "hearth"]);
    expect(await person.sees(">>> ")).toBe(true);
    await person.types("\x1b[200~Hello!\rWho are\ryou?\x1b[201~\r", /\n[^>\n]*[A-Za-z][^\n]*\r\n[^]*>>> /);
    await person.types("/save pasted\r", /Created/);
    person.child.terminal!.write("\x04");
    await person.ended();
    expect((await run(["show", "pasted", "--modelfile"])).stdout).toContain('MESSAGE user "Hello!\nWho are\nyou?"');
    await run(["rm", "pasted"]);
  });

  test("a pasted line is inserted at once, and its control characters are not keys", async () => {
    const person = sitDown(["run", "hearth"]);
    expect(await person.sees(">>> ")).toBe(true);
    await person.types("\x1b[200~a paste without its end\x03", /Use Ctrl \+ d[^]*>>> /);
    const pasted = "word ".repeat(20_000);
    await person.types(`/set system a\x1b[200~${pasted}\x04\x1b[31mend\x1b[201~z\r`, /Set system message\.[^]*>>> /);
    await person.types("/save long\r", /Created/);
    person.child.terminal!.write("\x04");
    await person.ended();
    expect((await run(["show", "long", "--system"])).stdout).toBe(`a${pasted}endz\n`);
    await run(["rm", "long"]);
  });
});
