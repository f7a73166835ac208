/** The report's chart: each figure relative to llama.cpp's rate, as SVG. */
import { compile, type TopLevelSpec } from "vega-lite";
import { Error as ERRORS, logger, parse, View } from "vega";
import { ratioOf } from "./markdown.ts";
import type { BenchRecord } from "./record.ts";

export function plotOf(records: readonly BenchRecord[]): Promise<string> {
  const values = records.flatMap(({ figures }) =>
    figures.flatMap((figure) => {
      const ratio = ratioOf(figure);
      return ratio === undefined || !figure.peer?.name.startsWith("llama-") || figure.unit !== "tokens/s"
        ? []
        : [{ ...figure, ratio }];
    }),
  );
  const what = { field: "what", type: "nominal", title: null, sort: null } as const;
  const spec: TopLevelSpec = {
    title: "Tokens per second, times llama.cpp's on the same file and cores",
    background: "white",
    data: { values: values.map(({ what: name, measure, ratio }) => ({ what: name, measure, ratio })) },
    facet: { row: { field: "measure", type: "nominal", title: null, header: { labelFontWeight: "bold" } } },
    resolve: { scale: { y: "independent" } },
    spec: {
      width: 520,
      layer: [
        {
          mark: { type: "bar", height: { band: 0.7 } },
          encoding: {
            y: { ...what, axis: { labelLimit: 260 } },
            x: { field: "ratio", type: "quantitative", title: null, axis: { format: ".1f" } },
            color: { field: "measure", type: "nominal", legend: null, scale: { range: ["#d9480f", "#f59f00"] } },
          },
        },
        {
          mark: { type: "text", align: "left", dx: 4 },
          encoding: { y: what, x: { field: "ratio", type: "quantitative" }, text: { field: "ratio", format: ".2f" } },
        },
        { mark: { type: "rule", strokeDash: [4, 3] }, encoding: { x: { datum: 1 } } },
      ],
    },
  };
  return new View(parse(compile(spec, { logger: logger(ERRORS) }).spec), { renderer: "none" }).toSVG();
}
