/** `hearth pull` and `push`. */
import { ApiError, type Json } from "../client.ts";
import type { CliContext } from "../context.ts";
import { makeProgress } from "../progress.ts";

export const pull = (context: CliContext, model: string, options: { insecure?: boolean }): Promise<void> =>
  follow(context, "/api/pull", { model, insecure: options.insecure ?? false });

export const push = (context: CliContext, model: string, options: { insecure?: boolean }): Promise<void> =>
  follow(context, "/api/push", { model, insecure: options.insecure ?? false });

/** Shows the progress of a request to its end. Ctrl+C cancels it; what was transferred is kept for the next try. */
export async function follow(
  { client, terminal, interruptible }: CliContext,
  path: string,
  body: object,
): Promise<void> {
  await interruptible(async (signal) => {
    const progress = makeProgress(terminal);
    let last: Json = {};
    try {
      for await (last of client.stream(path, body, signal)) progress.show(last);
      if (last["status"] !== "success") throw new ApiError(0, "the server's reply ended before 'success'");
    } catch (error) {
      throw signal.aborted ? new Error("cancelled") : error;
    } finally {
      progress.end();
    }
  });
}
