/** A file that may not be read: it is said to be that one, and not the store that cannot be written. */
import { expect, test } from "bun:test";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SRC = join(import.meta.dir, "../../src");

/** Everything is loaded before the rights go: the sources may be root's alone. */
const PROGRAM = `
  import { readSafetensors } from "${SRC}/convert/safetensors.ts";
  import { tensorData } from "${SRC}/convert/tensor-data.ts";
  import { findBytes } from "${SRC}/convert/folder.ts";
  import { readOnnxHeader } from "${SRC}/files/onnx.ts";
  import { f16 } from "${SRC}/quant/f16.ts";
  import { importBlob } from "${SRC}/store/blobs.ts";
  const [path, root] = process.argv.slice(-2);
  if (process.getuid() === 0) process.setuid(65534);
  const tensor = { name: "t", dtype: "F16", shape: [1], path, offset: 0, byteLength: 2 };
  const reads = [
    () => readSafetensors(path, "folder: 'F'"),
    () => Array.fromAsync(tensorData({ tensor, pairedHeads: 0, shift: 0 }, f16, "folder")),
    () => findBytes({ label: "folder", files: new Map([["F", path]]) }, "F"),
    () => readOnnxHeader(path),
    () => importBlob(root, path),
  ];
  for (const read of reads) {
    const said = await (async () => read())().then(() => "read", (error) => error.code + ": " + error.message);
    console.log(said.replace(path, "F"));
  }`;

test.skipIf(process.platform === "win32")("each reader says which file may not be read", async () => {
  const root = await mkdtemp(join(tmpdir(), "hearth-unreadable-"));
  try {
    const path = join(root, "file");
    await writeFile(path, new Uint8Array(100));
    await chmod(path, 0);
    await chmod(root, 0o755);
    const child = Bun.spawn([process.execPath, "-e", PROGRAM, "--", path, join(root, "store")], {
      stdout: "pipe",
      stderr: "inherit",
    });
    expect((await new Response(child.stdout).text()).trim().split("\n")).toEqual([
      "bad_file: folder: 'F': cannot be read: permission denied",
      "bad_file: folder: tensor 't': cannot be read: permission denied",
      "bad_file: folder: 'F': cannot be read: permission denied",
      "bad_file: F: cannot be read: permission denied",
      "bad_file: F: cannot be read: permission denied",
    ]);
  } finally {
    await rm(root, { recursive: true });
  }
});
