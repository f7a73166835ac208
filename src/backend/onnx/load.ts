/**
 * Loading: lower the program, pack its weights into a file, and open a session on it.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lower } from "../../../kernels/onnx/lower.ts";
import { makeHalfTable } from "../../../kernels/onnx/weights.ts";
import type { LoadOptions, Program, Session } from "../backend.ts";
import { bindApi } from "./api.ts";
import { makeKvCache } from "./kv-cache.ts";
import { openLibrary } from "./library.ts";
import { createSession, makeNativeExecutor, makeRuntime } from "./native.ts";
import { makeSession } from "./session.ts";
import { physicalCores } from "./threads.ts";
import { createWeightFile } from "./weight-file.ts";

const MODEL_NAME = "model.onnx";
const WEIGHTS_NAME = "weights.bin";

export async function loadSession(program: Program, options: LoadOptions): Promise<Session> {
  const library = openLibrary();
  const threads = options.threads > 0 ? options.threads : physicalCores();
  const folder = mkdtempSync(join(options.cacheDir ?? tmpdir(), "hearth-onnx-"));
  const file = createWeightFile(join(folder, WEIGHTS_NAME), WEIGHTS_NAME);
  const { lowered, model } = lower(program, {
    file,
    precise: options.precise,
    half: makeHalfTable(),
    packed: () => {},
  });
  file.close();
  await Bun.write(join(folder, MODEL_NAME), model());
  const runtime = makeRuntime(bindApi(library));
  const session = createSession(runtime, join(folder, MODEL_NAME), { threads });
  rmSync(folder, { recursive: true, force: true });
  const cache = makeKvCache(lowered.caches, options);
  const executor = makeNativeExecutor(runtime, session, cache);
  return makeSession({
    program,
    lowered,
    executor,
    cache,
    backend: "onnx",
    device: `CPU (${threads} thread${threads === 1 ? "" : "s"}, ONNX Runtime ${library.version})`,
    weightBytes: 0,
    release() {},
  });
}
