/** Opening files: mapped, read-only, closed safely, and every reference file. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { chmod, mkdir, open, truncate } from "node:fs/promises";
import { mapFileBy } from "../../../../src/engine/formats/files/map.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { encodeHeader, writeGguf } from "../../../../src/engine/formats/files/write.ts";
import type { TensorInfo } from "../../../../src/engine/formats/gguf/gguf.ts";
import { openGgufFrom } from "../../../../src/engine/formats/gguf/read.ts";
import { memorySource, type OpenSource } from "../../../../src/engine/formats/gguf/source.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { golden, goldenTest, hasGolden } from "../../../golden.ts";
import { encodeGguf, failure, smallModel, withFolder } from "./fixture.ts";
import { cpuMs } from "../../../cpu-time.ts";

test("tensors are read from the file, and an unknown name is an error", () =>
  withFolder(async (path) => {
    await writeGguf(path("m.gguf"), smallModel);
    const gguf = openGguf(path("m.gguf"));
    expect(gguf.path).toBe(path("m.gguf"));
    expect(gguf.fileBytes).toBe(Bun.file(path("m.gguf")).size);
    for (const { name, data } of smallModel.tensors) expect(Buffer.compare(gguf.read(name), data)).toBe(0);
    expect(failure(() => gguf.read("output.weight"))).toEndWith("m.gguf: expected a tensor 'output.weight', got none");
    gguf.close();
  }));

test("after close, views are empty and reading is an error", () =>
  withFolder(async (path) => {
    await writeGguf(path("m.gguf"), smallModel);
    const gguf = openGguf(path("m.gguf"));
    const view = gguf.read("output_norm.weight");
    expect(gguf.read("output_norm.weight")).toBe(view);
    expect(view[0]).toBe(2);
    gguf.close();
    gguf.close();
    expect(view.length).toBe(0);
    expect(view[0]).toBeUndefined();
    expect(() => gguf.read("output_norm.weight")).toThrow("read after close");
    expect(gguf.metadata.get("tokenizer.ggml.token_type")).toEqual(Int32Array.of(3, 1, 1));
  }));

test("a read-only file opens, and closing unmaps it", () =>
  withFolder(async (path) => {
    await writeGguf(path("m.gguf"), smallModel);
    await chmod(path("m.gguf"), 0o444);
    const maps = async () =>
      (await Bun.file("/proc/self/maps").text()).split("\n").filter((line) => line.includes("m.gguf"));
    const gguf = openGguf(path("m.gguf"));
    if (process.platform === "linux") expect((await maps()).join()).toMatch(/^\S+ r--s /);
    gguf.close();
    if (process.platform === "linux") expect(await maps()).toEqual([]);
  }));

test("a file that cannot be mapped is read by ranges", () =>
  withFolder(async (path) => {
    await Bun.write(path("f"), "0123456789");
    const file = mapFileBy(path("f"), () => undefined);
    expect(file.byteLength).toBe(10);
    expect(Buffer.from(file.view(3, 4)).toString()).toBe("3456");
    await truncate(path("f"), 5);
    expect(failure(() => file.view(3, 4))).toEndWith("the file ended while it was read");
    file.close();
    expect(() => file.view(0, 1)).toThrow("read after close");
  }));

test("tensors beyond 4 GiB are read from a file larger than memory", () =>
  withFolder(async (path) => {
    const rows = 5 * 2 ** 20;
    const tensors = [
      { name: "large", shape: [1024, rows], quant: quants.f32, data: [] }, // 20 GiB
      { name: "small", shape: [4], quant: quants.f32, data: [] },
    ];
    // A sparse file: the header claims 20 GiB, the disk holds a few pages.
    const { header } = encodeHeader({ metadata: {}, tensors });
    const offset = header.length + 4096 * rows;
    const file = await open(path("m.gguf"), "w");
    await file.write(header);
    await file.write(new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer), 0, 16, offset);
    await file.close();
    const gguf = openGguf(path("m.gguf"));
    expect(gguf.tensors.get("large")!.byteLength).toBe(20 * 2 ** 30);
    expect(gguf.read("small")).toEqual(new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
    expect(failure(() => gguf.read("large"))).toContain("expected at most 4294967296 bytes, got 21474836480");
    gguf.close();
  }));

test("a missing file, a folder, a pipe and an empty file are errors that say so", () =>
  withFolder(async (path) => {
    expect(failure(() => openGguf(path("none.gguf")))).toBe(`not_found: ${path("none.gguf")}: no such file`);
    await mkdir(path("folder"));
    expect(failure(() => openGguf(path("folder")))).toEndWith("expected a regular file, got something else");
    Bun.spawnSync(["mkfifo", path("pipe")]);
    if (process.platform !== "win32") expect(failure(() => openGguf(path("pipe")))).toEndWith("got something else");
    await Bun.write(path("empty"), "");
    expect(failure(() => openGguf(path("empty")))).toEndWith("got a file of 0 bytes");
  }));

test("an error about truncated weights names the tensor", () =>
  withFolder(async (path) => {
    await writeGguf(path("m.gguf"), smallModel);
    await truncate(path("m.gguf"), Bun.file(path("m.gguf")).size - 1);
    expect(failure(() => openGguf(path("m.gguf")))).toMatch(/'output_norm.weight' .* truncated or damaged$/);
  }));

for (const folder of ["archs", "vocab", "bert"]) {
  const names = hasGolden ? readdirSync(golden(folder)).filter((name) => name.endsWith(".gguf")) : [];
  goldenTest(`every reference file in ${folder}/ opens and every tensor reads`, () => {
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) {
      const gguf = openGguf(golden(`${folder}/${name}`));
      expect(gguf.metadata.get("general.architecture")).toBeString();
      for (const [tensor, { byteLength }] of gguf.tensors) expect(gguf.read(tensor).length).toBe(byteLength);
      gguf.close();
    }
  });
}

goldenTest("a header of 128,000 tokens and 280,000 merges is read in less than 5 seconds of processor time", () => {
  const start = cpuMs();
  const gguf = openGguf(golden("vocab/ggml-vocab-llama-bpe.gguf"));
  const elapsedMs = cpuMs() - start;
  expect((gguf.metadata.get("tokenizer.ggml.merges") as string[]).length).toBe(280_147);
  gguf.close();
  expect(elapsedMs).toBeLessThan(5000); // about 75 ms
});

test("a source whose views are copies is read in ranges, and no copy is kept", () => {
  const bytes = encodeGguf(smallModel);
  const reads: [number, number][] = [];
  const copying: OpenSource = () => ({
    ...memorySource(bytes),
    copies: true,
    view: (offset, length) => (reads.push([offset, length]), bytes.slice(offset, offset + length)),
  });
  const gguf = openGgufFrom(copying, "m.gguf");
  const [[name, info]] = [...gguf.tensors] as [[string, TensorInfo]];
  const whole = gguf.read(name);
  expect(gguf.read(name)).not.toBe(whole);
  reads.length = 0;
  expect([...gguf.readRange(name, 3, 5)]).toEqual([...whole.subarray(3, 8)]);
  expect(reads).toEqual([[info.offset + 3, 5]]);
  expect(() => gguf.readRange(name, 3, info.byteLength)).toThrow("a range outside of it");
});

test("ranges of a mapped tensor are views on one mapping", () =>
  withFolder(async (path) => {
    await writeGguf(path("m.gguf"), smallModel);
    const gguf = openGguf(path("m.gguf"));
    const [name] = gguf.tensors.keys();
    expect(gguf.readRange(name!, 4, 4).buffer).toBe(gguf.read(name!).buffer);
    gguf.close();
  }));
