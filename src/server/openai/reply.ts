/** Shared parts of the OpenAI API's replies: ids, times, counts. */
import type { DoneEvent } from "../answers/answer.ts";

/** The fields that every object of one answer begins with. */
export interface Head {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

/** @param prefix the kind of the id: `chatcmpl`, `cmpl` */
export function makeHead(prefix: string, { model, now }: { model: string; now: () => Date }): Head {
  const id = `${prefix}-${crypto.randomUUID().replaceAll("-", "")}`;
  return { id, created: seconds(now()), model, system_fingerprint: "fp_hearth" };
}

/** Whole seconds since 1970. */
export const seconds = (date: Date): number => Math.floor(date.getTime() / 1000);

/** Token counts; as an extension, a mark that the prompt was truncated to fit the context. */
export function usageOf({ statistics, truncated }: DoneEvent): object {
  const { promptEvalCount = 0, promptCachedCount = 0, evalCount = 0 } = statistics ?? {};
  const cut = truncated ? { truncated } : {};
  return {
    prompt_tokens: promptEvalCount,
    completion_tokens: evalCount,
    total_tokens: promptEvalCount + evalCount,
    prompt_tokens_details: { cached_tokens: promptCachedCount },
    ...cut,
  };
}
