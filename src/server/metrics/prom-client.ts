/**
 * The used parts of `prom-client`: its index would load the metrics of the Node process, and OpenTelemetry with them.
 */
import type * as library from "prom-client";
// @ts-expect-error the types describe the whole package
import counter from "prom-client/lib/counter.js";
// @ts-expect-error
import gauge from "prom-client/lib/gauge.js";
// @ts-expect-error
import histogram from "prom-client/lib/histogram.js";
// @ts-expect-error
import registry from "prom-client/lib/registry.js";

export const Counter: typeof library.Counter = counter;
export const Gauge: typeof library.Gauge = gauge;
export const Histogram: typeof library.Histogram = histogram;
export const Registry: typeof library.Registry = registry;
export type Registry = library.Registry;
export type Counter<Label extends string = string> = library.Counter<Label>;
