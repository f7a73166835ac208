/** Encoding an image yields to other work, which does not change the result. */
import { afterEach, expect, spyOn, test } from "bun:test";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { slowOnCpu } from "../../../src/engine/backends/index.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { decodeImage } from "../../../src/engine/vision/decode.ts";
import { openImageEncoder } from "../../../src/engine/vision/index.ts";
import { withFolder } from "../formats/gguf/fixture.ts";
import { makeProjector, makeVisionText, picture } from "./vision-model.ts";

const spied: { mockRestore(): void }[] = [];
afterEach(() => spied.splice(0).forEach((each) => each.mockRestore()));

test.skipIf(slowOnCpu() !== undefined)("an encoder pauses between the parts of a run", () =>
  withFolder(async (path) => {
    await writeGguf(path("p.gguf"), makeProjector());
    await writeGguf(path("t.gguf"), makeVisionText());
    const [projector, file] = [openGguf(path("p.gguf")), openGguf(path("t.gguf"))];
    const image = await decodeImage(picture(1));
    const options = { backend: simdBackend, threads: 1, text: undefined };
    const load = { ctxLen: 16, slots: 1, precise: true, threads: 1, cacheDir: undefined };
    const text = await simdBackend.load(loadProgram(file), load);
    const rows = { slot: 0, start: 0, tokens: Int32Array.of(1, 2, 3), logits: "last" } as const;
    const logits = Float32Array.from(await text.run([rows]));

    const alone = await openImageEncoder(projector, options);
    const expected = await alone.encode(image);
    let now = 0;
    spied.push(spyOn(performance, "now").mockImplementation(() => (now += 1000))); // every part takes a second
    let pauses = 0;
    const pause = async (): Promise<void> => {
      pauses++;
      expect(await text.run([rows])).toEqual(logits);
    };
    const shared = await openImageEncoder(projector, { ...options, pause });
    expect(await shared.encode(image)).toEqual(expected);
    expect(pauses).toBeGreaterThan(10); // two layers, of several parts each

    const abort = new AbortController();
    const gone = await openImageEncoder(projector, { ...options, pause: async () => abort.abort() });
    await expect(gone.encode(image, abort.signal)).rejects.toThrow("cancelled by the caller");
    expect(await shared.encode(image)).toEqual(expected);
    for (const each of [alone, shared, gone, text, projector, file]) each.close();
  }),
);

test("other tasks run while a large picture is scaled down", () =>
  withFolder(async (path) => {
    await writeGguf(path("p.gguf"), makeProjector());
    const projector = openGguf(path("p.gguf"));
    const options = { backend: cpuBackend, threads: 1, text: undefined };
    const lines = 1000;
    const image = await decodeImage(picture(1, 40, lines));
    const alone = await openImageEncoder(projector, options);
    const expected = await alone.encode(image);

    let now = 0;
    spied.push(spyOn(performance, "now").mockImplementation(() => (now += 1000))); // every line takes a second
    const loop = systemLoop();
    let turns = 0;
    let isDone = false;
    const others = (async () => {
      for (; !isDone; turns++) await loop.nextTurn();
    })();
    const shared = await openImageEncoder(projector, { ...options, pause: loop.nextTurn });
    expect(await shared.encode(image)).toEqual(expected);
    isDone = true;
    await others;
    expect(turns).toBeGreaterThan(lines);

    const abort = new AbortController();
    let pauses = 0;
    const pause = async (): Promise<void> => void (++pauses === 10 && abort.abort());
    const gone = await openImageEncoder(projector, { ...options, pause });
    await expect(gone.encode(image, abort.signal)).rejects.toThrow("cancelled by the caller");
    expect(pauses).toBe(10);
    for (const each of [alone, shared, gone, projector]) each.close();
  }));
