/** The model API and the page over HTTP. */
export { makeHandlers } from "./app.ts";
export type { Machine } from "./routes/deps.ts";
export { watchDescriptors } from "./descriptors.ts";
export { startHookListener } from "./hook-listener.ts";
export { startServer, type RunningServer } from "./http/serve.ts";
export { readTls, watchTls, type TlsPair } from "./http/tls.ts";
export type { Lifecycle } from "./routes/lifecycle.ts";
export { MetricExporter } from "./metrics/metric-exporter.ts";
export { storedModels } from "./models/stored-models.ts";
