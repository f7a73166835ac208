/**
 * `strict` of a JSON schema: refuses keywords that the grammar cannot enforce; otherwise the client has to check them.
 */
import { AppError } from "../../base/index.ts";
import { checkSize, schemaGrammar } from "../../engine/index.ts";

/** A schema without any of these is enforced completely. */
const RARE =
  /"(not|if|contains|patternProperties|uniqueItems|multipleOf|dependent(Required|Schemas)|dependencies|\$(dynamic|recursive)Ref)":/;

/**
 * Throws `bad_request` if a strict schema has keywords that no grammar enforces.
 * @param path of the schema in the request
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
    `${path}: strict: a grammar cannot enforce ${found}: remove it, or set strict to false`,
  );
}
