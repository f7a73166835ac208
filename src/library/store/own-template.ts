/** Decides by its manifest which of a model's templates is used. */
import type { ModelRef } from "./store.ts";

/** Undefined if the manifest does not say which of the model's templates wins. */
export const hasOwnTemplate = ({ config }: Pick<ModelRef, "config">): true | undefined =>
  config.hearth_template === "own" || undefined;
