/** Errors about a model that the server lacks: the same text from every command. */
import { nearest } from "../../base/index.ts";
import { ApiError, type Client, type Json } from "./client.ts";

export const isMissing = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

/** Runs work that needs a model. Throws an error with advice if the server lacks it. */
export async function withModel<T>(client: Client, model: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new Error(`model '${model}' not found: ${await hintFor(client, model)}`, { cause: error });
  }
}

/**
 * The error of a failed pull, with the model's name and advice in the words of the command line.
 * @param isWanted true: a command needs the model, and did not find it on the server
 */
export async function pullFailure(
  client: Client,
  error: unknown,
  { model, isWanted }: { readonly model: string; readonly isWanted: boolean },
): Promise<unknown> {
  if (!(error instanceof ApiError)) return error;
  if (error.message.endsWith("file does not exist")) {
    const where = isWanted ? "neither here nor in its registry" : "its registry does not have it";
    const hint = isWanted ? await hintFor(client, model) : await catalogueHint(client, model);
    return new Error(`model '${model}' not found, ${where}: ${hint}`, { cause: error });
  }
  const near = isWanted ? await nearModel(client, model) : undefined;
  const why =
    error.message === "unauthorized: access denied"
      ? "its registry refuses it (unauthorized): it is private, or has another name"
      : error.message.replace("('insecure' allows it)", "(--insecure allows it)");
  const lacks = isWanted ? `model '${model}' is not on this machine: ` : why === error.message ? "" : `'${model}': `;
  return new ApiError(error.status, `${lacks}${why}${near === undefined ? "" : `; did you mean '${near}'?`}`);
}

async function catalogueHint(client: Client, model: string): Promise<string> {
  const { models } = await client.get("/api/catalogue").catch((): Json => ({ models: [] }));
  const names = (models as Json[]).map(({ name }) => String(name));
  const near = nearest(model, [...names, ...names.map((name) => name.replace(/:.*$/, ""))]);
  return near === undefined ? "'hearth models' lists models to pull" : `did you mean '${near}'?`;
}

/** Advice for an unknown name. */
export async function hintFor(client: Client, model: string): Promise<string> {
  const near = await nearModel(client, model);
  return near === undefined ? "'hearth list' shows the models that are there" : `did you mean '${near}'?`;
}

/** The model of the server whose name is nearest to a misspelled one; undefined if no name is near. */
export const nearModel = async (client: Client, model: string): Promise<string | undefined> =>
  nearest(model, await modelNames(client));

/** Short names, latest change first; empty if the server does not answer. */
export async function modelNames(client: Client): Promise<string[]> {
  const { models } = await client.get("/api/tags").catch((): Json => ({ models: [] }));
  return (models as Json[]).map(({ name }) => String(name).replace(/:latest$/, ""));
}
