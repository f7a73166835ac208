/**
 * Tokenizes texts for embedding: each is truncated at the end to fit the context, keeping its special tokens, or
 * refused.
 */
import type { EventLoop } from "../batching/event-loop.ts";
import { AppError, codeOf, messageOf } from "../../base/index.ts";
import { adapterSet } from "../batching/adapter-set.ts";
import type { EmbedRequest } from "../batching/embed-queue.ts";
import type { LoadedEngine } from "../batching/load.ts";
import type { Tokenizer } from "../text/tokenizer/tokenizer.ts";
import type { Channel } from "./channel.ts";
import { pairEncoder } from "./rank-input.ts";
import type { EmbedMessage } from "./messages.ts";

/** Maximum characters to read, and ids to write, before other messages are handled: about 20 ms. */
const ENCODED_AT_ONCE = 100_000;

/** Queues a request's texts; an error in one of them fails the request. `pending` holds the request meanwhile. */
export async function embed(
  { engine, tokenizer, info, rankPrompt: prompt }: LoadedEngine,
  message: EmbedMessage,
  { channel, pending, loop }: { channel: Channel; pending: Set<number>; loop: EventLoop },
): Promise<void> {
  const { id, inputs, query, truncate, ctxLen = Infinity } = message;
  pending.add(id);
  try {
    const limit = Math.min(ctxLen, info.ctxLen);
    const pair = query === undefined ? undefined : pairEncoder(tokenizer, query, prompt);
    const texts: Int32Array[] = [];
    let sinceYield = 0;
    for (const [index, input] of inputs.entries()) {
      const ids = pair
        ? pair.encode(input, { limit, truncate, index })
        : encodeInput(tokenizer, input, { limit, truncate, index });
      texts.push(ids);
      sinceYield += input.length + ids.length;
      if (sinceYield < ENCODED_AT_ONCE) continue;
      sinceYield = 0;
      await loop.nextTurn();
      if (!pending.has(id)) return; // cancelled
    }
    const { rows: adapters } = adapterSet(message.adapters, info.adapters ?? []);
    engine.embed({ id, texts, ranks: pair !== undefined, second: pair?.second, adapters } satisfies EmbedRequest);
  } catch (error) {
    channel.send({ kind: "embedFailed", id, code: codeOf(error), message: messageOf(error) });
  } finally {
    pending.delete(id);
  }
}

/** Ids of one text with its special tokens, at most `limit`. Throws `bad_request`. */
export function encodeInput(
  tokenizer: Pick<Tokenizer, "encode" | "before" | "after">,
  text: string,
  { limit, truncate, index }: { limit: number; truncate: boolean; index: number },
): Int32Array {
  const bare = tokenizer.encode(text, { addSpecial: false, parseSpecial: true });
  const before = wanted(tokenizer.before, bare[0]);
  const isLong = bare.length > limit - before.length;
  const after = wanted(tokenizer.after, isLong ? undefined : bare.at(-1)); // truncation may remove it
  const room = limit - before.length - after.length;
  if (bare.length > room) {
    if (!truncate) throw new AppError("bad_request", "the input length exceeds the context length");
    if (room <= 0) throw new AppError("bad_request", "input after truncation exceeds maximum context length");
  }
  const ids = Int32Array.from([...before, ...bare.subarray(0, room), ...after]);
  if (ids.length > 0) return ids;
  throw new AppError("bad_request", `input ${index} is empty, and the model puts no special tokens around it`);
}

/** A special token, unless the text includes it. */
const wanted = (special: number | undefined, own: number | undefined): readonly number[] =>
  special === undefined || special === own ? [] : [special];
