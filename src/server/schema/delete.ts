/** The body of `DELETE /api/delete`. */
import { t } from "elysia";

export const DeleteBody = t.Object(
  {
    model: t.Optional(t.String()),
    /** The former name of `model`. */
    name: t.Optional(t.String()),
  },
  { title: "DeleteRequest" },
);
export type DeleteBody = typeof DeleteBody.static;
