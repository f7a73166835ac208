/** Chats of a browser that keeps none: gone with the tab. */
import type { ChatDatabase } from "./database.ts";
import type { Chat, Message } from "./tree.ts";

export function memoryDatabase(): ChatDatabase {
  const chats = new Map<string, Chat>();
  const messages = new Map<string, Message>();
  return {
    chats: async () => [...chats.values()],
    messages: async (chat) => [...messages.values()].filter((each) => each.chat === chat),
    some: async (ids) => ids.flatMap((id) => messages.get(id) ?? []),
    scan: async (visit) => void [...messages.values()].reverse().some(visit),
    save: async (change) => {
      for (const chat of change.chats ?? []) chats.set(chat.id, chat);
      for (const message of change.messages ?? []) messages.set(message.id, message);
    },
    removeChat: async (id) => {
      chats.delete(id);
      for (const message of messages.values()) if (message.chat === id) messages.delete(message.id);
    },
    removeMessages: async (ids) => {
      for (const id of ids) messages.delete(id);
    },
  };
}
