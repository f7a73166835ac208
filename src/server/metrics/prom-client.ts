/** Of `prom-client`, what we use: the whole of it loads what measures a Node process, and OpenTelemetry with that. */
import type * as library from "prom-client";
// @ts-expect-error the types are those of the whole
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
