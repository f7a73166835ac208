/**
 * Go text/template: `parseGoTemplate(source)` and operations on the result. Written for the prompt templates of model
 * stores, with their functions (`json`, `currentDate`, `yesterdayDate`, `toTypeScriptType`).
 */
import { cutAfterResponse, identifiersOf, type Node } from "./ast.ts";
import { type Program, RENDER_LIMITS, type RenderLimits, run } from "./eval.ts";
import { FUNCTIONS } from "./funcs.ts";
import { parse } from "./parser.ts";
import type { GoValue } from "./value.ts";

export interface GoTemplate {
  readonly source: string;
  /** The template's content, without definitions. */
  readonly nodes: readonly Node[];
  /**
   * Renders with `values` as `.` and `$`.
   * @throws AppError `bad_request` naming line, column and the failing text; `too_large` beyond a limit
   */
  render(values: GoValue, options: { now: Date; limits?: RenderLimits }): string;
  /** Lower-cased names of all fields and variables, in definitions too: `messages`, `$i`. */
  vars(): Set<string>;
  /** The same template without anything after its first `{{ .Response }}`. */
  withoutAfterResponse(): GoTemplate;
  /** The same template with `{{ .Response }}` at the end. */
  withResponseAppended(): GoTemplate;
}

/** @throws AppError `bad_request` with line and column; `too_large` */
export function parseGoTemplate(source: string): GoTemplate {
  const { main, defined } = parse(source, new Set([...Object.keys(FUNCTIONS), "and", "or"]));
  return fromProgram({ source, main, defined });
}

function fromProgram(program: Program): GoTemplate {
  return {
    source: program.source,
    nodes: program.main,
    render: (values, { now, limits = RENDER_LIMITS }) => run(program, values, { now, limits }),
    vars() {
      const found = identifiersOf(program.main);
      for (const nodes of program.defined.values()) identifiersOf(nodes, found);
      return found;
    },
    withoutAfterResponse: () => fromProgram({ ...program, main: cutAfterResponse(program.main).nodes }),
    withResponseAppended: () => fromProgram({ ...program, main: [...program.main, RESPONSE] }),
  };
}

/** `{{ .Response }}` */
const RESPONSE: Node = {
  kind: "action",
  pipe: {
    kind: "pipe",
    targets: [],
    assigns: false,
    commands: [{ operands: [{ kind: "field", path: ["Response"], at: 0, end: 0 }], at: 0, end: 0 }],
    at: 0,
    end: 0,
  },
};
