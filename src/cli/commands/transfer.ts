/** `hearth pull` and `push`. */
import { ApiError, type Json } from "../client/client.ts";
import { Interrupted, type CliContext } from "../terminal/context.ts";
import { pullFailure, withModel } from "../client/missing-model.ts";
import { readModelArgument } from "../terminal/model-argument.ts";
import { makeProgress, type Progress } from "../terminal/progress.ts";

interface Insecure {
  readonly insecure?: boolean | undefined;
}

export async function pull(context: CliContext, named: string, options: Insecure): Promise<void> {
  const argument = await readModelArgument(named);
  if (argument.kind === "path") {
    throw new Error(
      `'${named}' is here already: 'hearth run ${named}' runs it, and a Modelfile names it (FROM ${named})`,
    );
  }
  const model = argument.name;
  try {
    await fetchModel(context, model, options);
  } catch (error) {
    throw await pullFailure(context.client, error, { model, isWanted: false });
  }
}

/** Pulls a model by its name. Throws the server's error as it is. */
export async function fetchModel(context: CliContext, model: string, { insecure = false }: Insecure): Promise<void> {
  await follow(context, { path: "/api/pull", kept: "the part that came" }, { model, insecure });
}

export async function push(context: CliContext, model: string, options: Insecure): Promise<void> {
  const { client } = context;
  await withModel(client, model, () => client.post("/api/show", { model }));
  await follow(
    context,
    { path: "/api/push", kept: "the part that arrived" },
    { model, insecure: options.insecure ?? false },
  );
}

interface Followed {
  readonly path: string;
  /** The data that remains after Ctrl+C. */
  readonly kept: string;
}

/** Shows the progress of a request to its end. Ctrl+C cancels it; transferred data is kept for the next try. */
export async function follow(context: CliContext, { path, kept }: Followed, body: object): Promise<void> {
  await watched(context, kept, async (progress, signal) => {
    let last: Json = {};
    for await (last of context.client.stream(path, body, signal)) progress.show(last);
    if (last["status"] !== "success") throw new ApiError(0, "the server's reply ended before 'success'");
  });
}

/**
 * Shows the progress of some work. Throws `Interrupted` at Ctrl+C.
 * @param kept the data that remains then
 */
export async function watched<T>(
  { terminal, interruptible }: CliContext,
  kept: string,
  work: (progress: Progress, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return interruptible(async (signal) => {
    const progress = makeProgress(terminal);
    try {
      return await work(progress, signal);
    } catch (error) {
      throw signal.aborted ? new Interrupted(`stopped; ${kept} is kept: run the same command again`) : error;
    } finally {
      progress.end();
    }
  });
}
