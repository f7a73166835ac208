/** Models in the format of the Anthropic API. All of them are on one page. */
import type { StoredModel } from "../../library/portable.ts";

export function anthropicModel({ modifiedAt, displayName }: StoredModel, id: string): object {
  return {
    type: "model",
    id,
    display_name: displayName,
    created_at: modifiedAt.toISOString(),
    max_input_tokens: null, // depends on the request, or the server's settings
    max_tokens: null,
    capabilities: null,
    lifecycle: "active",
    deprecated_at: null,
    line: null,
  };
}

export function anthropicModels(models: readonly StoredModel[]): object {
  const data = models.map((model) => anthropicModel(model, model.displayName));
  const [first, last] = [models[0]?.displayName ?? null, models.at(-1)?.displayName ?? null];
  return { data, has_more: false, first_id: first, last_id: last };
}
