/**
 * A stream of values as the body of a response. Nothing is produced before the client has room for it; a client that
 * hangs up ends the producer; a failure after the first value is the stream's last words, for the status is spent by
 * then.
 */
import { AppError } from "../../base/index.ts";

interface StreamHooks {
  /** Aborted when the client goes away. */
  readonly gone: AbortController;
  /** Called once, when the stream has ended; with what went wrong, if anything did. */
  readonly onEnd: (error?: unknown) => void;
}

/** How values are put into text. */
export interface Encoding<T> {
  readonly headers: Readonly<Record<string, string>>;
  readonly value: (value: T) => string;
  /** What ends a stream that failed. */
  readonly error: (error: unknown) => string;
  /** Whether each value is a separate HTTP chunk: some clients parse chunks instead of lines. */
  readonly isApart?: boolean;
  /** Sent whenever nothing else was for `everyMs`; absent: silence may last. */
  readonly keepAlive?: { readonly text: string; readonly everyMs: number };
}

type Values<T> = AsyncGenerator<T, void, void>;
type Item<T> = IteratorResult<T, void>;

/** Waits for the first value, so that a failure before it still has a status of its own: it is thrown. */
export async function streamed<T>(values: Values<T>, encoding: Encoding<T>, hooks: StreamHooks): Promise<Response> {
  const first = values.next();
  const item = await within(first, encoding.keepAlive?.everyMs); // after that long, signs of life outweigh the status
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
  if (gone.signal.aborted) hangUp(); // while the first value was waited for: nobody reads this body
  /** The next piece of text; undefined at the end. */
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

/** What a promise resolves to, or undefined where that takes longer than `ms`. */
async function within<T>(promise: Promise<T>, ms: number | undefined): Promise<T | undefined> {
  if (ms === undefined) return promise;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), ms)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
