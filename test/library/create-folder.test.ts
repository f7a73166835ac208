/** Folders of safetensors as new models: the results, and no leftovers after a failure. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelFolder } from "../../src/library/convert/folder.ts";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../src/engine/formats/files/write.ts";
import { blobPath, writeBlob } from "../../src/library/store/blobs.ts";
import type { CreateRequest } from "../../src/library/create/creation.ts";
import type { Library } from "../../src/library/create/library.ts";
import { readModelfileAt, requestOfModelfile } from "../../src/library/create/modelfile-request.ts";
import { parseName } from "../../src/library/store/name.ts";
import type { Store } from "../../src/library/store/store.ts";
import { DTYPES, exactModel, plainFiles, writeFolder } from "./convert/hugging-face.ts";
import { blobsIn, distinct, fields, makeWorkplace, statusesOf } from "./creating.ts";
import { putModel } from "./fixture.ts";

let folder: string;
let root: string;
let allowed: string;
let store: Store;
let library: Library;
beforeEach(async () => {
  ({ folder, root, allowed, store, library } = await makeWorkplace());
});
afterEach(() => rm(folder, { recursive: true }));

const MODEL = exactModel("llama", DTYPES.F16);

const create = async (request: CreateRequest, signal?: AbortSignal): Promise<string[]> =>
  distinct(await statusesOf(library.create(request, signal ? { signal } : {})));

/** Files as blobs, as uploaded by a client. */
async function uploaded(files: Record<string, object> = plainFiles(MODEL, "F16")): Promise<ModelFolder> {
  const paths = new Map<string, string>();
  for (const [name, content] of Object.entries(files)) {
    const bytes = content instanceof Uint8Array ? content : new TextEncoder().encode(JSON.stringify(content));
    paths.set(`model/${name}`, blobPath(root, (await writeBlob(root, bytes)).digest));
  }
  return { label: "new", files: paths };
}

/** Name, type and bytes of every tensor of a stored model. */
async function storedTensors(name = "new"): Promise<string[]> {
  const gguf = openGguf((await store.load(name)).paths.model);
  const listed = [...gguf.tensors.values()].map(
    (info) => `${info.name} ${info.quant.name} ${Bun.hash(gguf.read(info.name))}`,
  );
  gguf.close();
  return listed.sort();
}

describe("creating from a folder", () => {
  test("takes num_ctx from max_seq_length, unless the request sets it or positions are fewer", async () => {
    const numCtx = async (max_seq_length: unknown, parameters = {}): Promise<unknown> => {
      const files = { ...plainFiles(MODEL, "F16"), "sentence_bert_config.json": { max_seq_length } };
      await create(fields({ folder: await uploaded(files), parameters }));
      return (await store.load("new")).parameters.num_ctx;
    };
    expect(await numCtx(6)).toBe(6);
    expect(await numCtx(6, { num_ctx: 7 })).toBe(7);
    for (const length of [1 << 20, null, 0, -3, 2.5, "6"]) expect(await numCtx(length)).toBeUndefined();
  });

  test("converts uploaded files, and reuses the layer when it is repeated", async () => {
    const source = await uploaded();
    const request = fields({ folder: source });
    const steps = ["converting model", "creating new layer D", "writing manifest", "success"];
    expect(await create(request)).toEqual(steps);
    expect(await create(request)).toEqual(steps.with(1, "using existing layer D"));
    const { config } = await store.load("new");
    expect(config).toMatchObject({ model_family: "llama", file_type: "F16" });
    await writeGguf(join(folder, "wanted.gguf"), MODEL);
    const wanted = openGguf(join(folder, "wanted.gguf"));
    const listed = [...wanted.tensors.values()].map(
      (info) => `${info.name} ${info.quant.name} ${Bun.hash(wanted.read(info.name))}`,
    );
    wanted.close();
    expect(await storedTensors()).toEqual(listed.sort());
  });

  test("reports its progress", async () => {
    const steps = await Array.fromAsync(library.create(fields({ folder: await uploaded() })));
    const last = steps.findLast((step) => "completed" in step);
    expect(last?.status).toBe("converting model");
    expect(last?.total).toBeGreaterThan(100_000);
    expect(last?.completed).toBe(last?.total);
  });

  test("takes the folder's path from a Modelfile, which may be in that folder", async () => {
    await writeFolder(join(allowed, "llama"), plainFiles(MODEL, "F16"));
    const steps = ["reading model metadata", "converting model", "creating system layer", "writing layer D"];
    for (const [path, from] of [
      [join(allowed, "Modelfile"), "./llama"],
      [join(allowed, "llama/Modelfile"), "."],
      [join(allowed, "Modelfile"), join(allowed, "llama")],
      [join(allowed, "Modelfile"), "llama"],
    ] as const) {
      await writeFile(path, `FROM ${from}`);
      const place = { root, importDirs: [allowed] };
      const { text, folder: at } = await readModelfileAt(path, place);
      const request = await requestOfModelfile(text, { ...place, folder: at, name: parseName("new") });
      const statuses = await create(request);
      expect(statuses.slice(0, 3)).toEqual(steps.slice(0, 3));
      expect(statuses.slice(-2)).toEqual(["writing manifest", "success"]);
      expect((await storedTensors()).length).toBe(MODEL.tensors.length);
    }
  });

  test("takes GGUF files in the folder as they are", async () => {
    await mkdir(join(allowed, "ggufs"));
    await writeGguf(join(allowed, "ggufs/model.gguf"), MODEL);
    const place = { root, importDirs: [allowed], name: parseName("new") };
    const request = await requestOfModelfile(`FROM ${join(allowed, "ggufs")}`, place);
    expect((await create(request)).at(-1)).toBe("success");
  });

  test("quantizes after conversion, and removes the intermediate file", async () => {
    const source = await uploaded();
    const before = await blobsIn(root);
    const steps = await create(fields({ folder: source, quantize: "Q8_0" }));
    expect(steps).toEqual([
      "converting model",
      "quantizing F16 model to Q8_0",
      "verifying conversion",
      "creating new layer D",
      "writing manifest",
      "success",
    ]);
    const { layers, config, digest } = await store.load("new");
    expect(config.file_type).toBe("Q8_0");
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect((await storedTensors()).some((line) => line.includes("q8_0"))).toBe(true);
    expect((await blobsIn(root)).length).toBe(before.length + layers.length + 1); // and the configuration
  });
});

describe("a failed create leaves no blob and no model", () => {
  const failure = (run: Promise<unknown>): Promise<unknown> =>
    run.then(() => undefined).catch((error: unknown) => error);

  async function expectNothing(request: CreateRequest, expected: object, signal?: AbortSignal): Promise<void> {
    const before = await blobsIn(root);
    expect(await failure(create(request, signal))).toMatchObject(expected);
    expect(await blobsIn(root)).toEqual(before);
    expect(store.load("new")).rejects.toThrow("not found");
  }

  test("if a file is damaged or missing, or the architecture is unknown", async () => {
    const files = plainFiles(MODEL, "F16");
    const weights = files["model.safetensors"] as Uint8Array;
    const cut = await uploaded({ ...files, "model.safetensors": weights.slice(0, -10) });
    await expectNothing(fields({ folder: cut }), {
      code: "bad_request",
      message: expect.stringMatching(/data_offsets within/),
    });
    const other = await uploaded({ ...files, "config.json": { architectures: ["Foo"] } });
    await expectNothing(fields({ folder: other }), {
      code: "unsupported",
      message: expect.stringContaining('unsupported architecture "Foo"'),
    });
    const source = await uploaded();
    const gone = { label: "new", files: new Map([...source.files, ["model/x.json", join(root, "blobs/none")]]) };
    await expectNothing(fields({ folder: gone }), { code: "bad_file", message: "new: 'model/x.json': no such file" });
  });

  test("if the request has a base too", async () => {
    await putModel(root, "base");
    await expectNothing(fields({ base: "base", folder: await uploaded() }), {
      code: "bad_request",
      message: "expected one GGUF model to build upon, got 'base:latest' and 'new'",
    });
  });

  test("if the client disconnects, before the start and at every step", async () => {
    const source = await uploaded();
    for (const quantize of [undefined, "Q8_0"] as const) {
      const request = fields({ folder: source, ...(quantize ? { quantize } : {}) });
      for (const abortAt of [0, 1, 2]) {
        const caller = new AbortController();
        const before = await blobsIn(root);
        const run = async (): Promise<void> => {
          let count = 0;
          for await (const _ of library.create(request, { signal: caller.signal })) {
            if (count++ === abortAt) caller.abort();
          }
        };
        expect(await failure(run())).toMatchObject({ code: "cancelled" });
        expect(await blobsIn(root)).toEqual(before);
      }
    }
  });

  test.skipIf(process.platform === "win32")("if the disk is full", async () => {
    const source = await uploaded();
    const src = join(import.meta.dir, "../../src/library");
    const program = `
      import { convertFolder } from "${src}/create/convert-folder.ts";
      const [root, files] = process.argv.slice(-2);
      const folder = { label: "new", files: new Map(JSON.parse(files)) };
      try {
        const claims = { add() {}, narrow() {}, end: async () => {} };
        for await (const _ of convertFolder(root, { folder, claims, inTurn: (work) => work() }));
      } catch (error) { console.log(error.code + ": " + error.message); }`;
    const limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 100; exec "$@"', "sh"]; // fails writes like a full disk
    const before = await blobsIn(root);
    const files = JSON.stringify([...source.files]);
    const child = Bun.spawn([...limited, process.execPath, "-e", program, "--", root, files], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const said = await new Response(child.stdout).text();
    expect(said).toMatch(/^storage: cannot write to '.*blobs': the file is larger than the disk or a limit allows\n$/);
    expect(await blobsIn(root)).toEqual(before);
  });

  test.skipIf(process.platform === "win32")("if a link leads out of the allowed folders", async () => {
    await writeFolder(join(allowed, "llama"), plainFiles(MODEL, "F16"));
    await rm(join(allowed, "llama/config.json"));
    await symlink("/etc/hostname", join(allowed, "llama/config.json"));
    const place = { root, importDirs: [allowed], name: parseName("new") };
    const request = requestOfModelfile(`FROM ${join(allowed, "llama")}`, place);
    expect(await failure(request)).toMatchObject({
      code: "forbidden",
      message: expect.stringMatching(/config.json: outside/),
    });
    const none = requestOfModelfile(`FROM ${allowed}`, place);
    expect(await failure(none)).toMatchObject({
      message: expect.stringMatching(/expected safetensors, ONNX, MLC or GGUF files/),
    });
  });
});
