/** The body of `POST /api/show`. */
import { t } from "elysia";

export const ShowBody = t.Object(
  {
    model: t.Optional(t.String()),
    /** The former name of `model`. */
    name: t.Optional(t.String()),
    system: t.Optional(t.String()),
    verbose: t.Optional(t.Boolean()),
    options: t.Optional(t.Record(t.String(), t.Unknown())),
  },
  { title: "ShowRequest" },
);
export type ShowBody = typeof ShowBody.static;
