/** Metrics as OTLP has them: what `/metrics` says, by the same names, in cumulative sums. */
import type { MetricObjectWithValues, MetricValueWithName } from "prom-client";
import { encodeAttributes, nanoseconds } from "../../base/tracing.ts";

type Gathered = MetricObjectWithValues<MetricValueWithName<string>>;

/** `AGGREGATION_TEMPORALITY_CUMULATIVE` of OTLP. */
const CUMULATIVE = 2;
/** Units of UCUM, by the end of a name. */
const UNITS: Readonly<Record<string, string>> = { seconds: "s", bytes: "By", total: "1" };

/** Milliseconds since the epoch: since when sums count, and now. */
export interface Period {
  readonly startMs: number;
  readonly nowMs: number;
}

/** Metrics without a value are left out. */
export function otlpMetrics(gathered: readonly Gathered[], { startMs, nowMs }: Period): object[] {
  const timeUnixNano = nanoseconds(nowMs);
  const times = { startTimeUnixNano: nanoseconds(startMs), timeUnixNano };
  const dataOf = ({ type, values }: Gathered): { data: object; points: readonly object[] } => {
    // prom-client's types call them numbers; they are names
    if (`${type}` === "histogram") {
      const dataPoints = histogramPoints(values).map((point) => ({ ...point, ...times }));
      return { points: dataPoints, data: { histogram: { dataPoints, aggregationTemporality: CUMULATIVE } } };
    }
    const isSum = `${type}` === "counter";
    const dataPoints = values
      .filter(({ value }) => Number.isFinite(value)) // JSON has no others
      .map(({ labels, value }) => ({
        attributes: attributesOf(labels),
        asDouble: value,
        ...(isSum ? times : { timeUnixNano }),
      }));
    const sum = { dataPoints, aggregationTemporality: CUMULATIVE, isMonotonic: true };
    return { points: dataPoints, data: isSum ? { sum } : { gauge: { dataPoints } } };
  };
  return gathered.flatMap((metric) => {
    const { points, data } = dataOf(metric);
    const unit = UNITS[/[a-z]+$/.exec(metric.name)?.[0] ?? ""];
    return points.length === 0 ? [] : [{ name: metric.name, description: metric.help, ...(unit && { unit }), ...data }];
  });
}

type Labels = MetricValueWithName<string>["labels"];

/** Texts all of them, as in `/metrics`. */
const attributesOf = (labels: Labels): object[] =>
  encodeAttributes(Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)])));

/** Without the bound of a bucket. */
function ownOf(labels: Labels): Labels {
  const { le: _, ...own } = labels;
  return own;
}

/** Prometheus counts what is up to each bound; OTLP what lies between two. */
function histogramPoints(values: readonly MetricValueWithName<string>[]): object[] {
  const bySeries = Map.groupBy(values, ({ labels }) => JSON.stringify(ownOf(labels)));
  return [...bySeries.values()].map((series) => {
    const of = (part: string) => series.filter(({ metricName }) => metricName?.endsWith(`_${part}`) === true);
    const upTo = of("bucket").map(({ value }) => value); // by rising bounds, the last of them +Inf
    return {
      attributes: attributesOf(ownOf(series[0]!.labels)),
      count: String(of("count")[0]!.value),
      sum: of("sum")[0]!.value,
      bucketCounts: upTo.map((n, i) => String(n - (upTo[i - 1] ?? 0))),
      explicitBounds: of("bucket").flatMap(({ labels }) => (labels["le"] === "+Inf" ? [] : Number(labels["le"]))),
    };
  });
}
