/** The body of `POST /api/copy`. */
import { t } from "elysia";

export const CopyBody = t.Object(
  { source: t.Optional(t.String()), destination: t.Optional(t.String()) },
  { title: "CopyRequest" },
);
export type CopyBody = typeof CopyBody.static;
