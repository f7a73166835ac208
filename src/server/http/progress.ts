/** Work with progress: every step as a stream, or only the last one. */
import { assert } from "../../base/index.ts";
import type { Progress } from "../../library/index.ts";
import type { Reply } from "./exchange.ts";

export async function progressReply(
  steps: AsyncGenerator<Progress, void, void>,
  { stream = true }: { stream?: boolean | undefined },
): Promise<Reply> {
  if (stream) return { kind: "stream", values: steps };
  return { kind: "json", body: await lastOf(steps), contentType: "application/json" }; // clients expect no charset
}

async function lastOf(steps: AsyncIterable<Progress>): Promise<Progress> {
  let last: Progress | undefined;
  for await (const step of steps) last = step;
  assert(last, "work that ended without a step");
  return last;
}
