/** The grammar of calls in Python with JSON literals, which `callsInPython` reads. */
import { isObject } from "../../base/index.ts";
import { inOrder } from "./call-grammar.ts";
import type { CallableTool, CallWriter } from "./call-writer.ts";
import { isClosed, propertiesOf } from "./raw-arguments.ts";

const NAME = /^[\p{L}_][\p{L}\p{N}_.-]*$/u;
const KEY = /^[\p{L}_][\p{L}\p{N}_-]*$/u;

/** Returns whether Python can have the names of a tool and of its arguments. */
export const isPython = (tool: CallableTool): boolean =>
  NAME.test(tool.name) && isClosed(tool) && propertiesOf(tool).every(({ key }) => KEY.test(key));

/** @param suffix the text after the name */
export function pythonCall(w: CallWriter, tool: CallableTool, suffix = ""): string {
  const keywords = propertiesOf(tool).map(({ key, schema, isRequired }) => {
    const value = w.value(isObject(schema) ? schema : {}, tool);
    return { expression: `${w.text(key)} "=" ${value}`, isRequired };
  });
  return `${w.text(`${tool.name}${suffix}(`)} ${inOrder(w, keywords, `"," ${w.ws}`)} ")"`;
}
