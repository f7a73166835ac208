/**
 * A stream of objects as NDJSON. Nothing is produced before the client has room for it; a client that hangs up ends the
 * producer; a failure after the first line is the last line, for the status is spent by then.
 */
import { AppError, messageOf } from "../base/errors.ts";

export interface StreamHooks {
  /** Aborted when the client goes away. */
  readonly gone: AbortController;
  /** Called once, when the stream has ended; with what went wrong, if anything did. */
  readonly onEnd: (error?: unknown) => void;
}

/** Waits for the first object, so that a failure before it still has a status of its own: it is thrown. */
export async function ndjson(values: AsyncGenerator<object, void, void>, hooks: StreamHooks): Promise<Response> {
  const first = await values.next();
  return new Response(lines(values, { first, ...hooks }), { headers: { "content-type": "application/x-ndjson" } });
}

function lines(
  values: AsyncGenerator<object, void, void>,
  { first, gone, onEnd }: StreamHooks & { first: IteratorResult<object, void> },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const line = (value: object): Uint8Array => encoder.encode(`${JSON.stringify(value)}\n`);
  let held: IteratorResult<object, void> | undefined = first;
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
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const item = held ?? (await values.next());
          held = undefined;
          if (ended) return;
          if (!item.done) return controller.enqueue(line(item.value));
          end();
        } catch (error) {
          if (ended) return;
          controller.enqueue(line({ error: messageOf(error) }));
          end(error);
        }
        controller.close();
      },
      cancel: () => gone.abort(),
    },
    { highWaterMark: 0 },
  );
}
