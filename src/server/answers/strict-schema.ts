/** `strict` of a JSON schema: what the grammar does not hold is refused, where it is left to the client otherwise. */
import { AppError } from "../../base/index.ts";
import { checkSize, schemaGrammar } from "../../engine/index.ts";

/** Without one of these, everything is held. */
const RARE =
  /"(not|if|contains|uniqueItems|multipleOf|dependent(Required|Schemas)|dependencies|\$(dynamic|recursive)Ref)":/;

/**
 * Throws `bad_request` where a schema that must be held has keywords that no grammar holds.
 * @param path where the request has the schema
 */
export function checkStrict(
  schema: Record<string, unknown>,
  { strict, path }: { strict: unknown; path: string },
): void {
  if (strict !== true || !RARE.test(checkSize(schema))) return;
  const { left } = schemaGrammar(schema);
  if (left.length === 0) return;
  const found = left.slice(0, 5).join(", ");
  throw new AppError(
    "bad_request",
    `${path}: strict: no grammar holds ${found}: expected a schema without, or strict false`,
  );
}
