/** Unreadable files: the error names the file, and does not blame the store; a folder may belong to another user. */
import { expect, test } from "bun:test";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SRC = join(import.meta.dir, "../../../src");

/** Loads everything before it drops its rights: only root may be able to read the sources. */
const PROGRAM = `
  import { join } from "node:path";
  import { readSafetensors } from "${SRC}/library/convert/safetensors.ts";
  import { tensorData } from "${SRC}/library/convert/tensor-data.ts";
  import { findBytes, listFolder } from "${SRC}/library/convert/folder.ts";
  import { readOnnxHeader } from "${SRC}/engine/formats/files/onnx.ts";
  import { f16 } from "${SRC}/engine/formats/quant/f16.ts";
  import { importBlob } from "${SRC}/library/store/blobs.ts";
  const folder = process.argv.at(-1);
  const path = join(folder, "file.json");
  if (process.getuid() === 0) process.setuid(65534);
  const tensor = { name: "t", dtype: "F16", shape: [1], path, offset: 0, byteLength: 2 };
  const reads = [
    () => readSafetensors(path, "folder: 'F'"),
    () => Array.fromAsync(tensorData({ tensor, pairedHeads: 0, shift: 0 }, f16, "folder")),
    () => findBytes({ label: "folder", files: new Map([["F", path]]) }, "F"),
    () => readOnnxHeader(path),
    () => importBlob(join(folder, "store"), path),
    () => listFolder(folder),
    () => listFolder(join(folder, "lost+found")),
  ];
  for (const read of reads) {
    const said = await (async () => read())().then(
      (found) => JSON.stringify(found),
      (error) => error.code + ": " + error.message,
    );
    console.log(said.replace(path, "F").replace(folder, "."));
  }`;

test.skipIf(process.platform === "win32")(
  "each reader names the file that it may not read, and skips unreadable folders",
  async () => {
    const root = await mkdtemp(join(tmpdir(), "hearth-unreadable-"));
    try {
      await writeFile(join(root, "file.json"), new Uint8Array(100));
      await mkdir(join(root, "lost+found"));
      for (const name of ["file.json", "lost+found"]) await chmod(join(root, name), 0);
      await chmod(root, 0o755);
      const child = Bun.spawn([process.execPath, "-e", PROGRAM, "--", root], {
        stdout: "pipe",
        stderr: "inherit",
      });
      expect((await new Response(child.stdout).text()).trim().split("\n")).toEqual([
        "bad_file: folder: 'F': cannot be read: permission denied",
        "bad_file: folder: tensor 't': cannot be read: permission denied",
        "bad_file: folder: 'F': cannot be read: permission denied",
        "bad_file: F: cannot be read: permission denied",
        "bad_file: F: cannot be read: permission denied",
        '["file.json"]',
        expect.stringMatching(/^bad_request: cannot read the folder '.\/lost\+found': EACCES/),
      ]);
    } finally {
      await rm(root, { recursive: true });
    }
  },
);
