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
