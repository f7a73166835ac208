/** Metrics in OTLP: the same as `/metrics`, with the same names, as cumulative sums. */
import type { MetricObjectWithValues, MetricValueWithName } from "prom-client";
import { encodeAttributes, nanoseconds } from "../../base/tracing.ts";

type Gathered = MetricObjectWithValues<MetricValueWithName<string>>;

/** `AGGREGATION_TEMPORALITY_CUMULATIVE` of OTLP. */
const CUMULATIVE = 2;
/** UCUM units by the suffix of a name. */
const UNITS: Readonly<Record<string, string>> = { seconds: "s", bytes: "By", total: "1" };

/** Milliseconds since the epoch: the start of counting, and now. */
export interface Period {
  readonly startMs: number;
  readonly nowMs: number;
}

/** Omits metrics without a value. */
export function otlpMetrics(gathered: readonly Gathered[], { startMs, nowMs }: Period): object[] {
  const timeUnixNano = nanoseconds(nowMs);
  const times = { startTimeUnixNano: nanoseconds(startMs), timeUnixNano };
  const dataOf = ({ type, values }: Gathered): { data: object; points: readonly object[] } => {
    // prom-client's types are declared as numbers; the values are names
    if (`${type}` === "histogram") {
      const dataPoints = histogramPoints(values).map((point) => ({ ...point, ...times }));
      return { points: dataPoints, data: { histogram: { dataPoints, aggregationTemporality: CUMULATIVE } } };
    }
    const isSum = `${type}` === "counter";
    const dataPoints = values
      .filter(({ value }) => Number.isFinite(value)) // JSON cannot represent other numbers
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

/** All values are texts, as in `/metrics`. */
const attributesOf = (labels: Labels): object[] =>
  encodeAttributes(Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)])));

/** All labels except a bucket's bound. */
function ownOf(labels: Labels): Labels {
  const { le: _, ...own } = labels;
  return own;
}

/** Prometheus counts values up to each bound; OTLP between two bounds. */
function histogramPoints(values: readonly MetricValueWithName<string>[]): object[] {
  const bySeries = Map.groupBy(values, ({ labels }) => JSON.stringify(ownOf(labels)));
  return [...bySeries.values()].map((series) => {
    const of = (part: string) => series.filter(({ metricName }) => metricName?.endsWith(`_${part}`) === true);
    const upTo = of("bucket").map(({ value }) => value); // by increasing bound, the last one +Inf
    return {
      attributes: attributesOf(ownOf(series[0]!.labels)),
      count: String(of("count")[0]!.value),
      sum: of("sum")[0]!.value,
      bucketCounts: upTo.map((n, i) => String(n - (upTo[i - 1] ?? 0))),
      explicitBounds: of("bucket").flatMap(({ labels }) => (labels["le"] === "+Inf" ? [] : Number(labels["le"]))),
    };
  });
}
