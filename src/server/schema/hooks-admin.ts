/** The body of `POST /hooks-admin/mappings/:id/test`. */
import { t } from "elysia";

export const DryRunBody = t.Object(
  {
    payload: t.Unknown(),
    headers: t.Optional(t.Record(t.String(), t.String())),
    query: t.Optional(t.Record(t.String(), t.String())),
  },
  { title: "DryRunRequest" },
);
export type DryRunBody = typeof DryRunBody.static;

/** Nothing: everything is in the address. */
export const NoBody = t.Object({}, { title: "NoFields" });
