/** `session_history`: what was said earlier in this session, also what no longer fits the model's context. */
import { z } from "zod";
import { listEntries } from "../sessions.ts";
import { defineTool } from "./tool.ts";

/** Entries that one call looks at: transcripts have no end. */
const SEARCHED_MAX = 2000;
const CHARS_MAX = 500;

export const sessionHistory = defineTool({
  name: "session_history",
  description:
    "Reads earlier messages of this conversation, the newest last, optionally only those with a word in them.",
  schema: z.object({
    limit: z.int().min(1).max(50).describe("how many messages at most; 10 where absent").optional(),
    contains: z.string().min(1).max(200).describe("text that the messages must contain, in any case").optional(),
  }),
  run: ({ limit = 10, contains }, { db, sessionKey }) => {
    const found = listEntries(db, { sessionKey, limit: SEARCHED_MAX }).flatMap(({ createdAt, body }) => {
      if (body.kind !== "message" || body.message.content === "") return [];
      const { role, content } = body.message;
      if (contains !== undefined && !content.toLowerCase().includes(contains.toLowerCase())) return [];
      const text = content.length > CHARS_MAX ? `${content.slice(0, CHARS_MAX)}…` : content;
      return [`[${new Date(createdAt).toISOString()}] ${role}: ${text}`];
    });
    return found.length === 0 ? "no messages" : found.slice(-limit).join("\n");
  },
});
