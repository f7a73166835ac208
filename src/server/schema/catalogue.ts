/** The answer of `GET /api/catalogue`. */
import { Type } from "@sinclair/typebox";
import { nullable, oneOfTexts, strictObject } from "../../base/schema.ts";
import { catalogueFields } from "../../library/index.ts";

const bytes = Type.Integer({ minimum: 0 });

export const CatalogueReply = strictObject({
  updated: Type.String({ description: "Year and month of the list" }),
  memory: strictObject({ total: bytes, available: bytes }),
  disk: strictObject({ free: nullable(bytes) }, { description: "Of the model store" }),
  suggested: Type.Array(Type.String(), { description: "At most three names for a first model, most useful first" }),
  models: Type.Array(
    strictObject({
      ...catalogueFields,
      installed: Type.Boolean(),
      fits: oneOfTexts(["yes", "tight", "no"]),
      reason: Type.Optional(Type.String()),
    }),
  ),
});
