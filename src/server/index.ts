/** The model API and the page over HTTP. */
export { makeHandlers } from "./app.ts";
export type { Machine } from "./deps.ts";
export { watchDescriptors } from "./descriptors.ts";
export { startHookListener } from "./hook-listener.ts";
export { startServer, type RunningServer } from "./http/serve.ts";
export type { Life } from "./life.ts";
export { MetricExporter } from "./metrics/metric-exporter.ts";
export { storedModels } from "./stored-models.ts";
