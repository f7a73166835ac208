/** A real server and the worst requests: an answer with a fitting status, and a server that keeps running. */
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { startHearth, type Hearth } from "../e2e/hearth.ts";

setDefaultTimeout(120_000);

let hearth: Hearth;
let logged = 0; // number of log lines that earlier tests have checked
beforeAll(async () => {
  hearth = await startHearth();
  await (await hearth.post("/api/generate", { model: "hearth" })).text();
});
afterAll(() => hearth.stop());

afterEach(async () => {
  expect((await fetch(`${hearth.url}/api/version`)).status).toBe(200);
  const lines = hearth.log().slice(logged);
  logged += lines.length;
  expect(lines.filter((line) => line.includes('"bug"'))).toEqual([]);
});

interface Answer {
  readonly status: number;
  readonly body: { readonly error?: string; readonly done_reason?: string; readonly response?: string };
}

/** One answer to a short prompt. */
async function generate(options: object, more: object = {}): Promise<Answer> {
  const short = { num_predict: 6, seed: 1, ...options };
  const request = { model: "hearth", prompt: "Hello", stream: false, options: short, ...more };
  const response = await hearth.post("/api/generate", request);
  return { status: response.status, body: (await response.json()) as Answer["body"] }; // the API's format
}

/** Sends raw bytes; resolves with the data received within `ms`, or until the server closed. */
function send(bytes: string, ms = 60_000): Promise<string> {
  return new Promise((resolve) => {
    let got = "";
    const socket = connect(Number(new URL(hearth.url).port), "127.0.0.1", () => socket.write(bytes));
    const timer = setTimeout(() => socket.destroy(), ms);
    socket.on("data", (data) => {
      got += data.toString("latin1");
      if (/\r\n\r\n[^]*}$/.test(got)) socket.destroy(); // headers and a JSON body
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(got);
    });
  });
}

describe("a Host header", () => {
  test("may be missing in HTTP/1.0", async () => {
    const got = await send("GET /api/version HTTP/1.0\r\n\r\n");
    expect(got).toStartWith("HTTP/1.1 200 OK");
    expect(got).toContain('{"version":');
  });

  test("may be missing from an HTTP/1.0 POST, whose body is still read", async () => {
    const body = JSON.stringify({ model: "nobody", prompt: "hi" });
    const got = await send(`POST /api/generate HTTP/1.0\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    expect(got).toContain(`{"error":"model 'nobody' not found"}`);
  });

  for (const host of ["[::1", "localhost@evil", "a b", "local/host:x"]) {
    test(`'${host}' is refused, and the answer shows no source code`, async () => {
      const got = await send(`GET /api/version HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      expect(got).toMatch(/^HTTP\/1.1 40[03] /);
      expect(got.length).toBeLessThan(500);
    });
  }
});

describe("generation returns tokens with extreme sampling options:", () => {
  const extremes: object[] = [
    { temperature: 1e-45 },
    { temperature: 1e-9 },
    { temperature: 1e9 },
    { temperature: -5 },
    { temperature: 3e38, repeat_penalty: 1e38 },
    { top_k: -1 },
    { top_k: 1e308 },
    { top_p: 0 },
    { top_p: 1e-9 },
    { min_p: 1 },
    { min_p: 2 },
    { tfs_z: 0 },
    { typical_p: 0 },
    { repeat_penalty: 0 },
    { repeat_penalty: -1 },
    { repeat_penalty: 1e9 },
    { repeat_last_n: 2 ** 40 },
    { presence_penalty: 3e38 },
    { frequency_penalty: -3e38 },
    { mirostat: 3 },
    { mirostat: 1, mirostat_tau: -1, mirostat_eta: 1e30 },
    { mirostat: 2, mirostat_tau: 0 },
    { mirostat: 2, mirostat_tau: 3e38, mirostat_eta: 3e38 },
    { seed: 2 ** 53 },
    { num_predict: 1e308, stop: ["."] },
    { num_keep: -1 },
    { num_keep: 1e9 },
    { stop: [""] },
    { stop: Array.from({ length: 10_000 }, (_, i) => `s${i}`) },
  ];
  for (const options of extremes) {
    test(JSON.stringify(options).slice(0, 80), async () => {
      const { status, body } = await generate(options);
      expect(status).toBe(200);
      expect(body.response).not.toBe("");
      expect(body.done_reason).toMatch(/^(stop|length)$/);
    });
  }
});

test("the model loads within the machine's limits, whatever load options a request has", async () => {
  const asked = [{ num_thread: 1000 }, { num_thread: 2 ** 31, num_batch: 2 ** 31 }, { num_thread: -1, num_batch: -1 }];
  for (const options of [...asked, { num_ctx: -1, num_batch: 1 }, { num_ctx: 2 ** 31 }]) {
    const { status, body } = await generate(options);
    expect({ options, status, error: body.error }).toEqual({ options, status: 200, error: undefined });
  }
});

test("a prompt longer than the context is shortened, whatever num_keep is", async () => {
  for (const num_keep of [-1, 0, 63, 64, 1e9]) {
    const { status, body } = await generate(
      { num_ctx: 64, num_keep, num_predict: 70 },
      { prompt: "a fox ".repeat(200) },
    );
    expect({ num_keep, status, done: /^(stop|length)$/.test(body.done_reason!) }).toEqual({
      num_keep,
      status: 200,
      done: true,
    });
  }
});

test("a context with ids outside the vocabulary is refused", async () => {
  for (const id of [-1, 1e6, 2 ** 31, 2 ** 32 + 5, 1.5, 2 ** 53]) {
    expect({ id, status: (await generate({}, { context: [id] })).status }).toEqual({ id, status: 400 });
  }
});

test("a format that no answer can satisfy, or that recurses without end, is refused", async () => {
  const loop = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } };
  const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`p${i}`, { type: "string" }]));
  const deep = JSON.parse(`${'{"items":'.repeat(500)}{}${"}".repeat(500)}`);
  const formats: object[] = [
    { $ref: "#" },
    loop,
    { enum: [] },
    { type: "nope" },
    { type: "string", pattern: "(" },
    deep,
  ];
  for (const format of [...formats, { type: "object", properties: wide }]) {
    const { status, body } = await generate({}, { format });
    expect(status).toBe(400);
    expect(body.error).toStartWith("format: ");
  }
  expect((await generate({}, { format: "xml" })).body.error).toBe(
    'format: expected "json" or a JSON schema, got "xml"',
  );
});

test("a body that nests too deep, has a wrong length or is incomplete gets a 4xx", async () => {
  const start = (more: string): string => `POST /api/generate HTTP/1.1\r\nHost: localhost\r\n${more}`;
  expect(await send(start("Transfer-Encoding: chunked\r\n\r\nZZ\r\n"))).toStartWith("HTTP/1.1 400");
  expect(await send(start("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"))).toStartWith(
    "HTTP/1.1 400",
  );
  expect(await send(start("Content-Length: -5\r\n\r\n"))).toStartWith("HTTP/1.1 400");
  expect(await send(start(`Content-Length: ${2 ** 43}\r\n\r\nx`))).toStartWith("HTTP/1.1 413");
  for (const text of ["[".repeat(100_000), '{"a":'.repeat(100_000), "\0{}", '{"model":"hearth",', "nul"]) {
    const response = await fetch(`${hearth.url}/api/chat`, { method: "POST", body: text });
    expect(response.status).toBe(400);
  }
});

test("a model name that leads out of the store is refused", async () => {
  for (const model of ["../../etc/passwd", "/etc/passwd", "a/../b", "..", "hearth:../../x", "hearth\0", "C:\\x"]) {
    for (const path of ["/api/generate", "/api/chat", "/api/show"]) {
      expect({ model, path, status: (await hearth.post(path, { model })).status }).toEqual({
        model,
        path,
        status: 400,
      });
    }
  }
});
