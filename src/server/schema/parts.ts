/** The body of `POST /api/parts`. */
import { t } from "elysia";

export const PartsBody = t.Object({ model: t.Optional(t.String()) }, { title: "PartsRequest" });
