/** A backend's early preparation goes from a load to its session, and ends if the load fails. */
import { expect, test } from "bun:test";
import type { Backend, Begun, LoadOptions } from "../../../src/engine/program/backend.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import type { ByteSource } from "../../../src/engine/formats/gguf/source.ts";
import { withFolder } from "../formats/gguf/fixture.ts";
import { makeProjector } from "../vision/vision-model.ts";
import { EMBEDDED, open } from "./embedded-engine.ts";

function watched(load?: Backend["load"]) {
  const said: string[] = [];
  const given: LoadOptions["begun"][] = [];
  const begun: Begun = {
    opened: (source: ByteSource) => void said.push(`opened ${source.byteLength}`),
    end: () => void said.push("ended"),
  };
  const backend: Backend = {
    ...simdBackend,
    begin: ({ threads }) => {
      said.push(`began ${threads}`);
      return begun;
    },
    load: (program, options) => {
      said.push("loads");
      given.push(options.begun);
      return (load ?? simdBackend.load)(program, options);
    },
  };
  return { backend, begun, said, given };
}
const opened = `opened ${Bun.file(EMBEDDED).size}`;

test("a backend prepares before the file is opened, and its session gets the preparation", async () => {
  const { backend, begun, said, given } = watched();
  const { engine } = await open(backend, undefined, [1]);
  expect(said).toEqual(["began 1", opened, "loads", "ended"]);
  expect(given).toEqual([begun]);
  await engine.close();
});

test("a failed load ends the preparation of its backend", async () => {
  const { backend, said } = watched(() => Promise.reject(new Error("no memory")));
  expect(await open(backend, undefined, [1]).catch((error: Error) => error.message)).toBe("no memory");
  expect(said).toEqual(["began 1", opened, "loads", "ended"]);
});

test("a failed load closes every file that it opened, the projector too", () =>
  withFolder(async (pathOf) => {
    const projector = pathOf("projector.gguf");
    await writeGguf(projector, makeProjector({}));
    const left = new Set<string>();
    const watch = (path: string): ByteSource => {
      const source = mapFile(path);
      left.add(path);
      return { ...source, close: () => void (left.delete(path), source.close()) };
    };
    const { backend } = watched(() => Promise.reject(new Error("no memory")));
    const opening = open(backend, undefined, [1], { open: watch, vision: { projector } });
    expect(left).toEqual(new Set([EMBEDDED, projector]));
    await expect(opening).rejects.toThrow("no memory");
    expect(left).toEqual(new Set());
  }));
