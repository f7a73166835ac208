/** `hearth logits`, `tokenize`, `generate`: output to compare with other implementations. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeGguf } from "../../src/engine/formats/files/write.ts";
import { encoders, makeEncoder } from "../engine/architectures/encoders.ts";
import { golden, goldenTest } from "../golden.ts";
import { childPids, eventually, runHearth } from "./hearth.ts";

setDefaultTimeout(60_000);

const MODEL = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
const home = mkdtempSync(join(tmpdir(), "hearth-cli-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const run = (args: string[], stdin = ""): ReturnType<typeof runHearth> => runHearth(args, { home, stdin });
const TOKENS = Array.from({ length: 32 }, (_, i) => (i * 37 + 11) % 128).join(",");

function floats(path: string): Float32Array {
  return new Float32Array(new Uint8Array(readFileSync(path)).buffer);
}

function nmse(got: Float32Array, expected: Float32Array): number {
  let error = 0;
  let norm = 0;
  for (const [i, value] of expected.entries()) {
    error += (got[i]! - value) ** 2;
    norm += value ** 2;
  }
  return error / norm;
}

goldenTest("logits writes the logits of every position, on the cpu and onnx backends", async () => {
  const model = golden("archs/qwen3-dense.gguf");
  const expected = floats(golden("archs/qwen3-dense.f32"));
  const limits = { "--backend=cpu": 1e-5, "--backend=onnx": 1e-2, "--backend=onnx --precise": 1e-4 };
  for (const [flags, limit] of Object.entries(limits)) {
    const out = join(home, "out.f32");
    const args = ["logits", "--model", model, "--tokens", TOKENS, "--out", out, ...flags.split(" ")];
    expect(await run(args)).toEqual({ code: 0, stdout: "", stderr: "" });
    const got = floats(out);
    expect(got.length).toBe(32 * 128);
    expect(nmse(got, expected)).toBeLessThan(limit);
  }
});

test("logits writes the pooled vector of an encoder, and generate refuses an encoder and names logits", async () => {
  const model = join(home, "bert.gguf");
  await writeGguf(model, makeEncoder(encoders["bert-mean"]));
  const out = join(home, "vector.f32");
  const args = ["--model", model, "--tokens", "1,2,3", "--backend", "cpu"];
  expect(await run(["logits", ...args, "--out", out])).toEqual({ code: 0, stdout: "", stderr: "" });
  const length = floats(out).reduce((sum, value) => sum + value * value, 0);
  expect([floats(out).length, length]).toEqual([encoders["bert-mean"].dim, expect.closeTo(1, 5)]);
  const { code, stderr } = await run(["generate", ...args, "--greedy", "3"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("an encoder generates nothing: 'hearth logits'")]);
});

test("generate prints the likeliest ids, the same on both backends in precise mode", async () => {
  const args = ["generate", "--model", MODEL, "--tokens", "300,400,500", "--greedy", "12"];
  const reference = await run([...args, "--backend", "cpu"]);
  expect(reference.stdout).toMatch(/^\d+(,\d+){11}\n$/);
  expect(await run([...args, "--backend", "onnx", "--precise"])).toEqual(reference);
});

test("tokenize prints the ids of standard input; special tokens can be plain text", async () => {
  const special = await run(["tokenize", "--model", MODEL], "<|im_start|>hello");
  const plain = await run(["tokenize", "--model", MODEL, "--no-special"], "<|im_start|>hello");
  expect(special.stdout).toMatch(/^\d+(,\d+)*\n$/);
  expect(plain.stdout.split(",").length).toBeGreaterThan(special.stdout.split(",").length);
});

goldenTest("tokenize agrees with llama.cpp", async () => {
  const vocab = golden("vocab/ggml-vocab-llama-bpe.gguf");
  const texts = readFileSync(`${vocab}.inp`, "utf8").split("\n__ggml_vocab_test__\n");
  const lines = readFileSync(`${vocab}.out`, "utf8").split("\n");
  const at = texts.findIndex((text) => text.length > 20);
  const { stdout } = await run(["tokenize", "--model", vocab, "--no-special"], texts[at]!);
  expect(stdout.trim().split(",")).toEqual(lines[at]!.trim().split(/\s+/));
});

goldenTest("quantize writes a model that answers, and refuses one that is quantized already", async () => {
  const out = join(home, "q4.gguf");
  const { code, stdout } = await run(["quantize", golden("archs/llama-dense.gguf"), out, "Q4_K_M"]);
  expect([code, stdout]).toEqual([0, `${out}: Q4_K_M, 64 tensors\n`]);
  const generate = ["generate", "--model", out, "--tokens", "1,2,3", "--greedy", "4", "--backend", "cpu"];
  expect((await run(generate)).stdout).toMatch(/^\d+(,\d+){3}\n$/);
  const again = await run(["quantize", out, join(home, "q8.gguf"), "q8_0"]);
  expect([again.code, again.stderr.trim().split("\n").length]).toEqual([1, 1]);
  expect((await run(["quantize", out, join(home, "x.gguf"), "q9_9"])).stderr).toContain("Q9_9");
});

test("bad input is one line on stderr and exit code 1", async () => {
  const broken = join(home, "broken.gguf");
  writeFileSync(broken, "GGUF\x03\0\0\0");
  const generate = (tokens: string): string[] => ["generate", "--model", MODEL, "--tokens", tokens, "--greedy", "1"];
  const cases: [string[], string][] = [
    [["logits", "--model", "/nowhere.gguf", "--tokens", "1", "--out", join(home, "x")], "/nowhere.gguf"],
    [["logits", "--model", broken, "--tokens", "1", "--out", join(home, "x")], broken],
    [generate("1,two"), "'two'"],
    [generate("99999999"), "99999999"],
    [generate(""), "--tokens"],
    [["generate", "--model", MODEL, "--tokens", "1", "--greedy", "some"], "--greedy"],
    [["tokenize"], "--model"],
    [["juggle"], "Error: unknown command 'juggle': see hearth --help"],
    [["help", "juggle"], "Error: unknown command 'juggle': see hearth --help"],
    [["lists"], "Error: unknown command 'lists': did you mean 'list'? See hearth --help"],
    [["list", "--sideways"], "Error: unknown option '--sideways'"],
    [["logits", "--model", MODEL, "--tokens", "1", "--backend", "abacus", "--out", join(home, "x")], "abacus"],
    [["logits", "--model", MODEL, "--tokens", "1", "--out", "/nowhere/at/all"], "/nowhere/at/all"],
  ];
  for (const [args, text] of cases) {
    const { code, stdout, stderr } = await run(args);
    expect([args[0], code, stdout]).toEqual([args[0], 1, ""]);
    expect(stderr).toContain(text);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  }
});

test("a command whose child process is killed exits with 128 + the signal, as in shells", async () => {
  const args = ["generate", "--model", MODEL, "--tokens", "300", "--greedy", "1000", "--backend", "cpu"];
  const { promise: pid, resolve: onStart } = Promise.withResolvers<number>();
  const ended = runHearth(args, { home, onStart });
  let own: number[] = [];
  const isStarted = async (): Promise<boolean> => {
    own = await childPids(await pid);
    const variables = await Promise.all(own.map((each) => readFile(`/proc/${each}/environ`, "utf8").catch(() => ""))); // gone
    return variables.length > 0 && variables.every((text) => text.includes("ORT_DISABLE_TELEMETRY=1"));
  };
  expect(await eventually(isStarted)).toBe(true);
  for (const each of own) process.kill(each, "SIGKILL");
  expect((await ended).code).toBe(128 + 9);
});
