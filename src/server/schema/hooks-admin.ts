/** The body of `POST /hooks-admin/mappings/:id/test`. */
import { t } from "elysia";

export const DryRunBody = t.Object(
  {
    payload: t.Optional(t.Unknown()),
    body: t.Optional(t.String({ description: "In place of `payload`: the body as its sender writes it, in base64" })),
    headers: t.Optional(t.Record(t.String(), t.String())),
    query: t.Optional(t.Record(t.String(), t.String())),
  },
  { title: "DryRunRequest" },
);
export type DryRunBody = typeof DryRunBody.static;

/** No fields: everything is in the URL. */
export const NoBody = t.Object({}, { title: "NoFields" });
