/** `session_history`: earlier messages of this session, also messages that no longer fit the model's context. */
import { Type } from "@sinclair/typebox";
import { shortened } from "../../../base/index.ts";
import { listEntries, READ_MAX } from "../sessions.ts";
import { defineTool } from "./tool.ts";

const CHARS_MAX = 500;

export const sessionHistory = defineTool({
  name: "session_history",
  description:
    "Reads earlier messages of this conversation, the newest last, optionally only messages that contain a word.",
  isOutside: true,
  schema: Type.Object({
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 50, description: "how many messages at most; 10 where absent" }),
    ),
    contains: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: "text that the messages must contain, in any case",
      }),
    ),
  }),
  run: async ({ limit = 10, contains }, { store, sessionKey }) => {
    const entries = await store.read(() => listEntries({ sessionKey, limit: READ_MAX }));
    const found = entries.flatMap(({ createdAt, body }) => {
      if (body.kind !== "message" || body.message.content === "") return [];
      const { role, content } = body.message;
      if (contains !== undefined && !content.toLowerCase().includes(contains.toLowerCase())) return [];
      return [`[${new Date(createdAt).toISOString()}] ${role}: ${shortened(content, CHARS_MAX)}`];
    });
    return found.length === 0 ? "no messages" : found.slice(-limit).join("\n");
  },
});
