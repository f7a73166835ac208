/** Quantizing during creation: the resulting weights, and no leftovers after a failure. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { quants } from "../../src/engine/formats/quant/index.ts";
import { writeBlob } from "../../src/library/store/blobs.ts";
import type { CreateRequest } from "../../src/library/create/creation.ts";
import type { Library } from "../../src/library/create/library.ts";
import { requestOfModelfile } from "../../src/library/create/modelfile-request.ts";
import { parseName } from "../../src/library/store/name.ts";
import { blobSource, type Source } from "../../src/library/create/sources.ts";
import type { Store } from "../../src/library/store/store.ts";
import { encodeGguf, type MemoryModel } from "../engine/formats/gguf/fixture.ts";
import { blobsIn, distinct, fields, makeWorkplace, statusesOf } from "./creating.ts";
import { halves } from "./fixture.ts";

let folder: string;
let root: string;
let allowed: string;
let store: Store;
let library: Library;
beforeEach(async () => {
  ({ folder, root, allowed, store, library } = await makeWorkplace());
});
afterEach(() => rm(folder, { recursive: true }));

/** Three ranges for a thread. */
const ROWS = 2200;
const WEIGHTS = halves(256 * ROWS);
const NORM = new Uint8Array(new Float32Array(256).fill(1).buffer);

const MODEL: MemoryModel = {
  metadata: {
    "general.architecture": "llama",
    "general.file_type": { u32: 1 },
    "llama.block_count": { u32: 1 },
    "llama.context_length": { u32: 512 },
  },
  tensors: [
    { name: "token_embd.weight", shape: [256, ROWS], quant: quants.f16, data: WEIGHTS },
    { name: "output_norm.weight", shape: [256], quant: quants.f32, data: NORM },
  ],
};

const put = async (model: MemoryModel = MODEL, label = "x.gguf"): Promise<Source> =>
  blobSource(root, { label, digest: (await writeBlob(root, encodeGguf(model))).digest });

const create = async (request: CreateRequest): Promise<string[]> => distinct(await statusesOf(library.create(request)));
const split = (no: number): MemoryModel => ({
  metadata: {
    ...(no === 0 ? { ...MODEL.metadata, "split.tensors.count": { i32: 2 } } : {}),
    "split.no": { u16: no },
    "split.count": { u16: 2 },
  },
  tensors: [MODEL.tensors[no]!],
});

describe("quantizing the weights", () => {
  test("takes a file, and describes the model by the result", async () => {
    const steps = await create(fields({ sources: [await put()], quantize: "Q4_K_M", system: "S" }));
    expect(steps).toEqual([
      "parsing GGUF",
      "quantizing F16 model to Q4_K_M",
      "verifying conversion",
      "creating new layer D",
      "creating new layer D",
      "writing manifest",
      "success",
    ]);
    const { paths, config, system } = await store.load("new");
    expect({ ...config, system }).toMatchObject({ file_type: "Q4_K_M", model_family: "llama", system: "S" });
    const gguf = openGguf(paths.model);
    expect([...gguf.tensors.values()].map(({ quant }) => quant.name)).toEqual(["q6_K", "f32"]); // tied embedding
    expect(gguf.metadata.get("general.file_type")).toBe(15);
    gguf.close();
  });

  test("takes a model, and leaves the base unchanged", async () => {
    await create(fields({ name: parseName("base"), sources: [await put()], system: "S" }));
    const before = await store.load("base");
    expect(await create(fields({ base: "base", quantize: "Q8_0" }))).toEqual([
      "quantizing F16 model to Q8_0",
      "verifying conversion",
      "creating new layer D",
      "using existing layer D",
      "writing manifest",
      "success",
    ]);
    const { config, layers, system } = await store.load("new");
    expect([config.file_type, system, layers.length]).toEqual(["Q8_0", "S", 2]);
    expect(layers[0]!.from).toBe("base:latest");
    expect((await store.load("base")).layers).toEqual(before.layers);
  });

  test("stores one blob for two equal requests", async () => {
    const source = await put();
    await create(fields({ sources: [source], quantize: "Q4_0" }));
    const again = await create(fields({ name: parseName("again"), sources: [source], quantize: "Q4_0" }));
    expect(again).toContain("using existing layer D");
    const digests = await Promise.all(["new", "again"].map(async (name) => (await store.load(name)).layers[0]!.digest));
    expect(digests[0]).toBe(digests[1]!);
  });

  test("joins a split model first, in any order of parts, and stores only the result", async () => {
    await create(fields({ name: parseName("whole"), sources: [await put()], quantize: "Q4_0" }));
    const sources = [await put(split(1), "b"), await put(split(0), "a")];
    const before = await blobsIn(root);
    await create(fields({ sources, quantize: "Q4_0" }));
    const [whole, joined] = [await store.load("whole"), await store.load("new")];
    expect(joined.layers[0]).toEqual(whole.layers[0]);
    expect(await blobsIn(root)).toHaveLength(before.length); // model and configuration belong to the other
    expect((await blobsIn(root)).filter((name) => name.startsWith("."))).toEqual([]);
  });

  test("reads a local file in place, and stores only the result", async () => {
    await writeFile(join(allowed, "m.gguf"), encodeGguf(MODEL));
    const place = { root, importDirs: [allowed], name: parseName("new") };
    const request = await requestOfModelfile(`FROM ${join(allowed, "m.gguf")}\nSYSTEM S`, place);
    expect(await create({ ...request, quantize: "Q5_0" })).toEqual([
      "quantizing F16 model to Q5_0",
      ...Array(2).fill("creating new layer D"), // weights, system
      "writing manifest",
      "success",
    ]);
    expect(await blobsIn(root)).toHaveLength(3);
  });

  test("keeps weights that have the requested type", async () => {
    const source = await put();
    expect(await create(fields({ sources: [source], quantize: "F16" }))).toEqual([
      "parsing GGUF",
      "using existing layer D",
      "writing manifest",
      "success",
    ]);
    expect((await store.load("new")).paths.model).toBe(source.path);
  });

  test("leaves a projector unchanged", async () => {
    const projector = await put({ ...MODEL, metadata: { "general.architecture": "clip" } }, "p.gguf");
    await create(fields({ sources: [projector, await put()], quantize: "Q4_0" }));
    expect((await store.load("new")).paths.projectors).toEqual([projector.path]);
  });
});

test("progress counts the bytes of the source up to the total, under a status that names both types", async () => {
  const seen = (await Array.fromAsync(library.create(fields({ sources: [await put()], quantize: "Q4_0" })))).flatMap(
    ({ completed, ...step }) => (completed === undefined ? [] : [{ ...step, completed }]),
  );
  const total = WEIGHTS.length + NORM.length;
  for (const step of seen) expect(step).toMatchObject({ status: "quantizing F16 model to Q4_0", total });
  expect(seen.at(-1)!.completed).toBe(total);
  expect(seen.map(({ completed }) => completed)).toEqual(seen.map(({ completed }) => completed).sort((a, b) => a - b));
});

test("progress is reported at most a thousand times for any number of tensors", async () => {
  const norms = Array.from({ length: 1500 }, (_, i) => ({ ...MODEL.tensors[1]!, name: `n${i}.weight` }));
  const source = await put({ ...MODEL, tensors: [MODEL.tensors[0]!, ...norms] });
  const steps = await Array.fromAsync(library.create(fields({ sources: [source], quantize: "Q8_0" })));
  const seen = steps.filter((step) => "completed" in step).length;
  expect([seen > 0, seen <= 1001]).toEqual([true, true]);
});

test("models are quantized one at a time", async () => {
  const source = await put();
  const seen: string[] = [];
  const run = async (name: string): Promise<void> => {
    const request = fields({ name: parseName(name), sources: [source], quantize: "Q2_K" });
    for await (const step of library.create(request)) if ("completed" in step) seen.push(name);
  };
  await Promise.all(["a", "b", "c"].map(run));
  expect(seen.filter((name, i) => name !== seen[i - 1])).toHaveLength(3);
});

describe("a failed quantization leaves no blob and no model", () => {
  /** The error of a request; the store must be unchanged. */
  async function failure(run: () => Promise<unknown>): Promise<unknown> {
    const before = await blobsIn(root);
    const error = await run().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(await blobsIn(root)).toEqual(before);
    expect(await store.find("new")).toBeUndefined();
    return error;
  }

  test("if the weights are quantized already", async () => {
    const q4 = new Uint8Array(18 * 8 * 4);
    const tensors = [{ name: "token_embd.weight", shape: [256, 4], quant: quants.q4_0, data: q4 }];
    const source = await put({ ...MODEL, tensors });
    const message = "quantization is only supported for F16, BF16 and F32 models";
    for (const quantize of ["Q4_0", "Q8_0", "F16"] as const) {
      expect(await failure(() => create(fields({ sources: [source], quantize })))).toMatchObject({
        code: "bad_request",
        message,
      });
    }
  });

  test("if a weight is not finite, with the request's name of the file in the error", async () => {
    const data = WEIGHTS.slice();
    data.set([0x00, 0x7c], 1000); // infinity
    const tensors = [{ ...MODEL.tensors[0]!, data }, MODEL.tensors[1]!];
    const source = await put({ ...MODEL, tensors });
    expect(await failure(() => create(fields({ sources: [source], quantize: "Q4_0" })))).toMatchObject({
      code: "bad_request",
      message: "x.gguf: tensor 'token_embd.weight': expected finite weights, got Infinity",
    });
  });

  test("if a part of a split model is missing", async () => {
    const source = await put(split(0));
    expect(await failure(() => create(fields({ sources: [source], quantize: "Q4_0" })))).toMatchObject({
      code: "bad_request",
      message: "expected all 2 parts of a split model, got 1",
    });
  });

  test("if the client disconnects before or between ranges, or stops reading", async () => {
    const request = fields({ sources: [await put(split(0), "a"), await put(split(1), "b")], quantize: "Q2_K" });
    for (const abortAt of [0, 2, 3, 4]) {
      const caller = new AbortController();
      const run = async (): Promise<void> => {
        let count = 0;
        for await (const _ of library.create(request, { signal: caller.signal })) {
          if (count++ === abortAt) caller.abort();
        }
      };
      expect(await failure(run)).toMatchObject({ code: "cancelled" });
    }
    const stop = async (): Promise<void> => {
      for await (const step of library.create(request)) if ("completed" in step) break;
    };
    expect(await failure(stop)).toBeUndefined();
  });

  test("if the library closes, also for requests in the queue", async () => {
    const source = await put();
    const run = async (): Promise<void> => {
      const made = [0, 1].map(async () => {
        for await (const step of library.create(fields({ sources: [source], quantize: "Q2_K" }))) {
          if ("completed" in step) void library.close();
        }
      });
      const ends = await Promise.allSettled(made);
      expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
      await library.close();
      expect((await blobsIn(root)).filter((name) => name.startsWith("."))).toEqual([]);
      await Promise.any(made);
    };
    const shuttingDown = { code: "busy", message: "the server is shutting down" };
    expect(await failure(run)).toMatchObject({ errors: [shuttingDown, shuttingDown] });
  });

  test.skipIf(process.platform === "win32")("if the disk is full", async () => {
    const source = await put();
    const src = join(import.meta.dir, "../../src/library");
    const program = `
      import { createModel } from "${src}/create/create.ts";
      import { blobSource } from "${src}/create/sources.ts";
      import { parseName } from "${src}/store/name.ts";
      const [root, digest] = process.argv.slice(-2);
      const request = { shape: "fields", name: parseName("new"), licenses: [], parameters: {}, messages: [], extras: {},
        capabilities: [], sources: [blobSource(root, { label: "x.gguf", digest })], quantize: "Q8_0" };
      try {
        const nothing = { publish: async () => {}, hold: () => () => {}, discard: async () => {} };
        const parts = { root, ...nothing, inTurn: (work) => work() };
        for await (const _ of createModel(parts, request));
      } catch (error) { console.log(error.code + ": " + error.message); }`;
    const limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 500; exec "$@"', "sh"]; // fails writes like a full disk
    const before = await blobsIn(root);
    const child = Bun.spawn([...limited, process.execPath, "-e", program, "--", root, source.digest!], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const said = await new Response(child.stdout).text();
    expect(said).toMatch(/^storage: cannot write to '.*blobs': the file is larger than the disk or a limit allows\n$/);
    expect(await blobsIn(root)).toEqual(before);
  });
});
