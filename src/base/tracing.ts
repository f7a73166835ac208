/** Traces in OpenTelemetry's format. */
export {
  OtlpSender,
  encodeAttributes,
  nanoseconds,
  type Attributes,
  type OtlpOptions,
  type OtlpTarget,
} from "./otlp.ts";
export { formatTraceparent, newSpanId, parseTraceparent, type Trace } from "./traceparent.ts";
export { Tracer, type Span } from "./tracer.ts";
