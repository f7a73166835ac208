/** `hearth cp`, `rm` and `stop`: one request each. */
import { ApiError } from "../client.ts";
import type { CliContext } from "../context.ts";

export async function copy({ client, terminal }: CliContext, source: string, destination: string): Promise<void> {
  await client.call("POST", "/api/copy", { source, destination });
  terminal.write(`copied '${source}' to '${destination}'\n`);
}

/** Ends with the first model that cannot be deleted. */
export async function remove(context: CliContext, models: readonly string[]): Promise<void> {
  for (const model of models) {
    await unload(context, model).catch((error: unknown) => {
      if (!isMissing(error)) context.terminal.note(`Warning: unable to stop model '${model}'`);
    });
    await context.client.call("DELETE", "/api/delete", { model });
    context.terminal.write(`deleted '${model}'\n`);
  }
}

export async function stop(context: CliContext, model: string): Promise<void> {
  await unload(context, model).catch((error: unknown) => {
    throw isMissing(error) ? new Error(`couldn't find model "${model}" to stop`) : error;
  });
}

async function unload({ client }: CliContext, model: string): Promise<void> {
  await client.post("/api/generate", { model, keep_alive: 0 });
}

const isMissing = (error: unknown): boolean => error instanceof ApiError && error.status === 404;
