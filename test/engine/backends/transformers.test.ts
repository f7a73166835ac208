/** Sessions on the library's forward pass, in a process whose environment turns off telemetry of native code. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLibrary } from "../../../src/engine/backends/host/transformers/library.ts";
import { messageOf } from "../../../src/base/errors.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { llamaFolder, writeFiles } from "../../library/convert/onnx-folder.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-sessions-"))));
afterAll(() => rm(folder, { recursive: true }));

test("rows have the logits of one run over the whole text after pieces, steps, copies and shifts", async () => {
  const gguf = openGguf(join(import.meta.dir, "../../../models/hearth/hearth.gguf"));
  await writeFiles(join(folder, "model"), llamaFolder(gguf.metadata));
  const external = llamaFolder(gguf.metadata, { isExternal: true });
  gguf.close();
  const apart = await writeFiles(join(folder, "apart"), external);
  const command = [
    join(import.meta.dir, "transformers-child.ts"),
    join(folder, "model"),
    join(apart, "onnx/model.onnx"),
  ];
  const child = Bun.spawn([process.execPath, ...command], {
    env: { ...process.env, ORT_DISABLE_TELEMETRY: "1", TMPDIR: folder },
    stdout: "pipe",
    stderr: "inherit",
  });
  const off = JSON.parse(await child.stdout.text()) as Record<string, number | string>;
  const { missing, hostile, ...differences } = off;
  expect(Object.keys(differences)).toEqual(["pieces", "steps", "shorter", "copied", "shifted"]);
  for (const [how, difference] of Object.entries(differences))
    expect([how, Number(difference) < 1e-4]).toEqual([how, true]);
  expect(missing).toBe("the model: expected a file 'onnx/model.onnx_data', got none");
  expect(hostile).toStartWith("transformers.js cannot load the model: ");
  expect((await readdir(folder)).filter((name) => name.startsWith("hearth-onnx-"))).toEqual([]); // links are removed
});

test("the error names the missing package and how to install it", async () => {
  const load = (name: string): Promise<never> => Promise.reject(new Error(`Cannot find package '${name}'`));
  const problem = await openLibrary(load).then(
    () => "none",
    (error: unknown) => messageOf(error),
  );
  expect(problem).toBe(
    "models in ONNX files need the optional package '@huggingface/transformers', which cannot be loaded here: install " +
      "it beside Hearth (npm install @huggingface/transformers): Cannot find package '@huggingface/transformers'",
  );
});
