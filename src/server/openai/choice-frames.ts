/** The frames of streamed choices: of chats and of completions. */
import type { AnswerEvent, DoneEvent, ReportEvent } from "../answers/answer.ts";
import type { Frame } from "../http/sse.ts";
import { merged, totalOf } from "./choices.ts";
import { usageOf, type Head } from "./reply.ts";
import { timingsOf } from "./timings.ts";

/** One generator for each choice. */
export type Choices = readonly AsyncGenerator<AnswerEvent | ReportEvent, void, void>[];

/** The fields of a chunk for an event; undefined: there is no chunk. */
export type ChunkWriter = (event: AnswerEvent | ReportEvent) => object | undefined;

interface FrameOptions {
  /** The kind of object of a chunk. */
  readonly object: string;
  readonly head: Head;
  /** Choices for each prompt. */
  readonly count: number;
  /** True if a last chunk has the usage. */
  readonly includeUsage: boolean;
  readonly writer: (index: number) => ChunkWriter;
}

/** The frames that the writers make, one with the usage if requested, and the end mark. */
export async function* choiceFrames(choices: Choices, options: FrameOptions): AsyncGenerator<Frame, void, void> {
  const { object, head, count, includeUsage } = options;
  const chunk = (rest: object): Frame => ({ data: { object, ...head, ...rest } });
  const writers = choices.map((_, index) => options.writer(index));
  const ends: DoneEvent[] = [];
  const frameOf = (index: number, event: AnswerEvent | ReportEvent): Frame | undefined => {
    const fields = writers[index]!(event); // one per choice
    if (event.kind !== "done") return fields && chunk(fields);
    ends[index] = event;
    const isLast = !includeUsage && choices.length === 1;
    return fields && chunk(isLast ? { ...fields, ...timingsOf([event]) } : fields);
  };
  const [only, ...more] = choices;
  if (only && more.length === 0) {
    for await (const event of only) {
      const frame = frameOf(0, event);
      if (frame) yield frame;
    }
  } else {
    for await (const { index, event } of merged(choices)) {
      const frame = frameOf(index, event);
      if (frame) yield frame;
    }
  }
  if (includeUsage) yield chunk({ choices: [], usage: usageOf(totalOf(ends, count)), ...timingsOf(ends) });
  yield { data: "[DONE]" };
}
