/** The body of `POST /api/pull` and `POST /api/push`. */
import { t } from "elysia";

const fields = {
  model: t.Optional(t.String()),
  /** What `model` was called at first. */
  name: t.Optional(t.String()),
  /** Speak http with the registry. */
  insecure: t.Optional(t.Boolean()),
  stream: t.Optional(t.Boolean()),
};

export const PullBody = t.Object(fields, { title: "PullRequest" });
export const PushBody = t.Object(fields, { title: "PushRequest" });
