/**
 * `hearth/browser`: the engine for pages. A page starts the built Worker (`worker-main.ts`), passes it to these
 * functions and uses the runner that they return. Messages may have images, as bytes of their files, if the model has a
 * projector; the browser decodes them.
 */
export { listStored, removeStored, startRunner, storeInPage, type PageWorker } from "./client.ts";
export type { PageFile } from "./files.ts";
export type { Download } from "./storage.ts";
export type { LoadMessage } from "../../engine/index.ts";
export type { RunnerClient, RunnerEvent } from "../../runtime/portable.ts";
