/** What people are told of a model that was loaded otherwise than they expect of it. */
import type { Logger } from "../base/log.ts";
import type { EngineInfo } from "../engine/load.ts";

/** Times the file from which on the memory that weights take is told. */
const WIDENED_MIN = 2;

type Told = Pick<EngineInfo, "backend" | "device" | "bytes" | "vramBytes" | "gpuLayers">;

/** @param file the model's */
export function tellLoad(log: Pick<Logger, "info" | "warn">, info: Told, file: string): void {
  const { backend, device, bytes, vramBytes, gpuLayers } = info;
  if (gpuLayers && gpuLayers.count < gpuLayers.all) {
    log.info("some layers of a model are on the GPU, the others on the CPU", { file, device, vramBytes }); // so it is slower
  }
  const { size } = Bun.file(file);
  if (bytes.weights <= WIDENED_MIN * size) return;
  const times = Math.round((10 * bytes.weights) / size) / 10;
  const what = "the weights of a model take more memory than their file: the backend widens their block type";
  log.warn(what, { file, backend, times, bytes: bytes.weights });
}
