/** `hearth cp`, `rm` and `stop`: one request each. */
import { ApiError } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { withModel } from "../client/missing-model.ts";

const SILENT_MS = 2000;

export async function copy({ client, terminal }: CliContext, source: string, destination: string): Promise<void> {
  await withModel(client, source, () => client.call("POST", "/api/copy", { source, destination }));
  terminal.write(`copied '${source}' to '${destination}'\n`);
}

/** Stops at the first model that cannot be deleted. */
export async function remove(context: CliContext, models: readonly string[]): Promise<void> {
  for (const model of models) {
    await unload(context, model).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.status < 500) return; // the request below says why
      context.terminal.note(`Warning: unable to stop model '${model}': ${error.message}`);
    });
    const { client } = context;
    await withModel(client, model, () => client.call("DELETE", "/api/delete", { model }));
    context.terminal.write(`deleted '${model}'\n`);
  }
}

/** With `force` the model's requests fail; otherwise the model is unloaded when they are done. */
export async function stop(context: CliContext, model: string, { force = false }: { force?: boolean }): Promise<void> {
  await withModel(context.client, model, () => unload(context, model, force));
}

/** Waits for the model's requests, and says so after a while. */
async function unload({ client, terminal }: CliContext, model: string, force = false): Promise<void> {
  const words = `waiting for the running requests of '${model}'; 'hearth stop --force ${model}' ends them`;
  const timer = setTimeout(() => terminal.note(words), SILENT_MS);
  try {
    await client.post("/api/generate", { model, keep_alive: 0, ...(force && { force }) });
  } finally {
    clearTimeout(timer);
  }
}
