/** Reads the answers of runners, for pages and for their tests. */
import type { RunnerEvent } from "../../../src/page/engine/index.ts";

/** The text of an answer, and the ids of its prompt and itself. */
export async function textOf(events: AsyncIterable<RunnerEvent>): Promise<{ text: string; tokens: number[] }> {
  let text = "";
  for await (const event of events) {
    if (event.kind === "text") text += event.text;
    if (event.kind === "done") return { text, tokens: [...event.tokens] };
  }
  throw new Error("an answer without an end");
}
