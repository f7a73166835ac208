/**
 * A stream of values as the body of a response. Values are produced only when the client has room; a disconnect ends
 * the producer; an error after the first value is written into the stream, because the status has been sent by then.
 */
import { AppError, inTime } from "../../base/index.ts";

interface StreamHooks {
  /** Aborted when the client disconnects. */
  readonly gone: AbortController;
  /** Called once, at the end of the stream, with the error if there was one. */
  readonly onEnd: (error?: unknown) => void;
}

/** Converts values to text. */
export interface Encoding<T> {
  readonly headers: Readonly<Record<string, string>>;
  readonly value: (value: T) => string;
  /** The text that ends a failed stream. */
  readonly error: (error: unknown) => string;
  /** True if each value is a separate HTTP chunk: some clients parse chunks instead of lines. */
  readonly isApart?: boolean;
  /** Sent after `everyMs` of silence; absent: silence is allowed. */
  readonly keepAlive?: { readonly text: string; readonly everyMs: number };
}

type Values<T> = AsyncGenerator<T, void, void>;
type Item<T> = IteratorResult<T, void>;

/** Waits for the first value, and throws an error before it, so that it still has a status of its own. */
export async function streamed<T>(values: Values<T>, encoding: Encoding<T>, hooks: StreamHooks): Promise<Response> {
  const first = values.next();
  // after this time, a sign of life is more important than the status
  const item = await within(first, encoding.keepAlive?.everyMs);
  const opening = item === undefined ? encoding.keepAlive?.text : undefined;
  return new Response(body({ values, first, opening, encoding, hooks }), { headers: encoding.headers });
}

function body<T>(parts: {
  values: Values<T>;
  first: Promise<Item<T>>;
  opening: string | undefined;
  encoding: Encoding<T>;
  hooks: StreamHooks;
}): ReadableStream<Uint8Array> {
  const { values, encoding, hooks } = parts;
  let { opening } = parts;
  const { gone, onEnd } = hooks;
  const encoder = new TextEncoder();
  const apart = encoding.isApart ? makeTurns() : undefined;
  let pending: Promise<Item<T>> | undefined = parts.first;
  let ended = false;
  const end = (error?: unknown): void => {
    if (ended) return;
    ended = true;
    gone.signal.removeEventListener("abort", hangUp);
    onEnd(error);
  };
  const hangUp = (): void => {
    end(new AppError("cancelled", "the client went away"));
    values.return().catch(() => {}); // already reported as gone
  };
  gone.signal.addEventListener("abort", hangUp, { once: true });
  if (gone.signal.aborted) hangUp(); // the client left during the wait for the first value
  /** the next piece of text; undefined at the end */
  const next = async (): Promise<string | undefined> => {
    const before = opening;
    opening = undefined;
    if (before !== undefined) return before;
    pending ??= values.next();
    const item = await within(pending, encoding.keepAlive?.everyMs);
    if (item === undefined) return encoding.keepAlive?.text;
    pending = undefined;
    return item.done ? undefined : encoding.value(item.value);
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const text = await next();
          await apart?.();
          if (ended) return;
          if (text !== undefined) return controller.enqueue(encoder.encode(text));
          end();
        } catch (error) {
          await apart?.();
          if (ended) return;
          controller.enqueue(encoder.encode(encoding.error(error)));
          end(error);
        }
        controller.close();
      },
      cancel: () => gone.abort(),
    },
    { highWaterMark: 0 },
  );
}

/** Waits for the next turn of the event loop if this turn already had a value: Bun joins the values of one turn. */
function makeTurns(): () => Promise<void> {
  let over: Promise<void> = Promise.resolve();
  return async () => {
    await over;
    over = new Promise((resolve) => setImmediate(resolve));
  };
}

/** The result of a promise, or undefined after `ms`. */
function within<T>(promise: Promise<T>, ms: number | undefined): Promise<T | undefined> {
  return ms === undefined ? promise : inTime(promise, { ms, late: () => undefined });
}
