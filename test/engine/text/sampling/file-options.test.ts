import { expect, test } from "bun:test";
import type { Metadata, MetadataValue } from "../../../../src/engine/formats/gguf/gguf.ts";
import { fileOptions, unusedSamplers } from "../../../../src/engine/text/sampling/file-options.ts";

const metadata = (keys: Readonly<Record<string, MetadataValue>>): Metadata =>
  new Map(Object.entries(keys).map(([key, value]) => [`general.sampling.${key}`, value]));

test("keys of general.sampling become options with their values", () => {
  const keys = {
    temp: Math.fround(0.6),
    top_k: 20,
    top_p: Math.fround(0.95),
    min_p: Math.fround(0.05),
    penalty_last_n: -1,
    penalty_repeat: Math.fround(1.1),
    mirostat: 2,
    mirostat_tau: 5,
    mirostat_eta: Math.fround(1e-7),
  };
  expect(fileOptions(metadata(keys))).toEqual({
    temperature: 0.6,
    top_k: 20,
    top_p: 0.95,
    min_p: 0.05,
    repeat_last_n: -1,
    repeat_penalty: 1.1,
    mirostat: 2,
    mirostat_tau: 5,
    mirostat_eta: 1e-7,
  });
  expect(fileOptions(new Map([["general.name", "x"]]))).toEqual({});
});

test("values out of range are clamped as in a request", () => {
  const keys = { top_k: -4, mirostat: 7, penalty_last_n: 2 ** 40 };
  expect(fileOptions(metadata(keys))).toEqual({ top_k: 0, mirostat: 0, repeat_last_n: 2 ** 31 - 1 });
});

test("a value that is no finite number is an error that names the key", () => {
  for (const temp of [NaN, Infinity, -Infinity]) {
    expect(() => fileOptions(metadata({ temp }))).toThrow(
      `metadata 'general.sampling.temp': expected a finite number, got ${temp}`,
    );
  }
  expect(() => fileOptions(metadata({ top_k: "40" }))).toThrow(`expected a number, got the string "40"`);
  expect(() => fileOptions(metadata({ top_p: 1e300 }))).toThrow('option "top_p" must be of type float32');
});

test("the order of samplers is read, without unknown samplers, whose key is reported", () => {
  const keys = { xtc_probability: 0.5, xtc_threshold: 0.25, sequence: "top_k; temperature" };
  expect(fileOptions(metadata(keys))).toEqual({
    xtc_probability: 0.5,
    xtc_threshold: 0.25,
    samplers: ["top_k", "temperature"],
  });
  expect(unusedSamplers(metadata(keys))).toEqual([]);
  const other = metadata({ sequence: "infill;min_p" });
  expect(fileOptions(other)).toEqual({ samplers: ["min_p"] });
  expect(unusedSamplers(other)).toEqual(["general.sampling.sequence"]);
});
