/** The body of `POST /api/pull` and `POST /api/push`. */
import { t } from "elysia";

const fields = {
  model: t.Optional(t.String()),
  /** The former name of `model`. */
  name: t.Optional(t.String()),
  /** Uses http for the registry. */
  insecure: t.Optional(t.Boolean()),
  stream: t.Optional(t.Boolean()),
};

export const PullBody = t.Object(fields, { title: "PullRequest" });
export const PushBody = t.Object(fields, { title: "PushRequest" });
