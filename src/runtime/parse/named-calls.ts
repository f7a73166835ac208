/**
 * Calls in bare JSON, which look like an answer until they name a tool: the grammar applies after the name.
 *
 *     {"name": "get_weather", "parameters": {"city": "Oslo"}}
 */
import type { CallWriter, OpenedCall } from "./call-writer.ts";

/** @param keys of the arguments */
export const namedCalls = (w: CallWriter, keys: readonly string[]): OpenedCall[] =>
  w.tools.map((tool) => {
    const name = JSON.stringify(tool.name);
    const key = keys.map((each) => w.text(JSON.stringify(each))).join(" | ");
    return {
      opens: [`{"name": ${name}`, `{"name":${name}`, `{"type": "function", "name": ${name}`],
      atStart: true,
      rest: `${w.ws} "," ${w.ws} (${key}) ":" ${w.ws} ${w.args(tool)} ${w.ws} "}"`,
    };
  });
