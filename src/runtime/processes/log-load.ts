/** Logs loads that differ from a user's expectations. */
import type { Logger } from "../../base/index.ts";
import type { EngineInfo, LoadMessage } from "../../engine/index.ts";

/** Logged if weights take this many times the bytes of the file. */
const WIDENED_MIN = 2;

type LoadFacts = Pick<
  EngineInfo,
  "backend" | "device" | "bytes" | "vramBytes" | "gpuLayers" | "streamed" | "draftUnused" | "samplersUnused"
>;

/** @param load the message that loaded it */
export function logLoad(
  log: Pick<Logger, "info" | "warn">,
  info: LoadFacts,
  { path: file, projector, draft, files = [] }: Pick<LoadMessage, "path" | "projector" | "draft" | "files">,
): void {
  const { backend, device, bytes, vramBytes, gpuLayers } = info;
  if (gpuLayers && gpuLayers.count < gpuLayers.all) {
    log.info("some layers of a model are on the GPU, the others on the CPU", { file, device, vramBytes }); // so it is slower
  }
  if (gpuLayers?.cpuExperts) {
    log.info("experts of a model are on the CPU, the rest is on the GPU", { file, device, vramBytes });
  }
  if (info.streamed) {
    const { memory } = info.streamed;
    log.info("a model does not fit in memory: some weights are read from disk when it needs them", {
      file,
      memory,
      bytes: bytes.weights,
    });
  }
  if (info.draftUnused !== undefined) {
    log.warn("a model answers without its draft model", { file, draft, reason: info.draftUnused });
  }
  if (info.samplersUnused.length > 0) {
    log.warn("a model's file recommends samplers that do not exist here", { file, keys: info.samplersUnused });
  }
  const paths = [file, ...(projector === undefined ? [] : [projector]), ...files.map(({ path }) => path)];
  const size = paths.reduce((sum, path) => sum + Bun.file(path).size, 0);
  if (bytes.weights <= WIDENED_MIN * size) return;
  const times = Math.round((10 * bytes.weights) / size) / 10;
  const what = "the weights of a model take more memory than their file: the backend widens their block type";
  log.warn(what, { file, backend, times, bytes: bytes.weights });
}
