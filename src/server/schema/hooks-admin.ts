/** Bodies of requests to `/hooks-admin`. */
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

export const VerdictBody = t.Object(
  {
    verdict: t.String({ description: '"yes" or "no"' }),
    digest: t.Optional(t.String({ description: "Digest of the call that was shown; another one is refused" })),
  },
  { title: "Verdict" },
);

/** No fields: everything is in the URL. */
export const NoBody = t.Object({}, { title: "NoFields" });
