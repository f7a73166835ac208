/** Chats in memory, for browsers without storage: they last as long as the tab. */
import type { ChatDatabase } from "./database.ts";
import type { RecordKind, Records } from "./library-types.ts";
import type { Chat, Message } from "./tree.ts";

export function memoryDatabase(): ChatDatabase {
  const chats = new Map<string, Chat>();
  const messages = new Map<string, Message>();
  const records: { [K in RecordKind]: Map<string, Records[K]> } = { folders: new Map(), prompts: new Map() };
  return {
    records: async <K extends RecordKind>(kind: K) => [...(records[kind] as Map<string, Records[K]>).values()],
    saveRecords: async (kind, all) => {
      for (const record of all) (records[kind] as Map<string, typeof record>).set(record.id, record);
    },
    removeRecord: async (kind, id) => void records[kind].delete(id),
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
