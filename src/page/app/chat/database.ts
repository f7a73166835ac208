/** Chats in the browser's database (IndexedDB). Each message is a record: saving one writes one. */
import type { RecordKind, Records } from "./library-types.ts";
import type { Chat, Message } from "./tree.ts";

const NAME = "hearth";
/** 1: chats and messages. 2: folders and prompts, too. */
const VERSION = 2;

export interface ChatDatabase {
  chats(): Promise<Chat[]>;
  messages(chat: string): Promise<Message[]>;
  /** The existing messages among these. */
  some(ids: readonly string[]): Promise<Message[]>;
  /** Visits every message of every chat until `visit` returns true. */
  scan(visit: (message: Message) => boolean): Promise<void>;
  save(change: { readonly chats?: readonly Chat[]; readonly messages?: readonly Message[] }): Promise<void>;
  removeChat(id: string): Promise<void>;
  removeMessages(ids: Iterable<string>): Promise<void>;
  records<K extends RecordKind>(kind: K): Promise<Records[K][]>;
  saveRecords<K extends RecordKind>(kind: K, records: readonly Records[K][]): Promise<void>;
  removeRecord(kind: RecordKind, id: string): Promise<void>;
}

/** Throws if this browser stores nothing, as in some private windows. */
export async function openDatabase(factory: IDBFactory): Promise<ChatDatabase> {
  const request = factory.open(NAME, VERSION);
  request.onupgradeneeded = ({ oldVersion }) => {
    const db = request.result;
    if (oldVersion < 1) {
      db.createObjectStore("chats", { keyPath: "id" });
      db.createObjectStore("messages", { keyPath: "id" }).createIndex("chat", "chat");
    }
    for (const name of ["folders", "prompts"] satisfies RecordKind[]) db.createObjectStore(name, { keyPath: "id" });
  };
  const db = await settled(request);
  db.onversionchange = () => db.close(); // a newer page in another tab changes the schema

  const change = async (write: (chats: IDBObjectStore, messages: IDBObjectStore) => void): Promise<void> => {
    const transaction = db.transaction(["chats", "messages"], "readwrite");
    write(transaction.objectStore("chats"), transaction.objectStore("messages"));
    await completed(transaction);
  };
  const changeRecords = async (kind: RecordKind, write: (store: IDBObjectStore) => void): Promise<void> => {
    const transaction = db.transaction(kind, "readwrite");
    write(transaction.objectStore(kind));
    await completed(transaction);
  };

  return {
    chats: async () => (await settled(db.transaction("chats").objectStore("chats").getAll())) as Chat[],
    messages: async (chat) =>
      (await settled(db.transaction("messages").objectStore("messages").index("chat").getAll(chat))) as Message[],
    some: async (ids) => {
      const store = db.transaction("messages").objectStore("messages");
      const found = await Promise.all(ids.map((id) => settled<Message | undefined>(store.get(id))));
      return found.filter((each) => each !== undefined);
    },
    scan: (visit) =>
      new Promise((resolve, reject) => {
        const cursor = db.transaction("messages").objectStore("messages").openCursor(null, "prev");
        cursor.onerror = () => reject(cursor.error);
        cursor.onsuccess = () => {
          const at = cursor.result;
          if (at && !visit(at.value as Message)) at.continue();
          else resolve();
        };
      }),
    save: ({ chats = [], messages = [] }) =>
      change((chatStore, messageStore) => {
        for (const chat of chats) chatStore.put(chat);
        for (const message of messages) messageStore.put(message);
      }),
    removeChat: async (id) => {
      const keys = await settled(db.transaction("messages").objectStore("messages").index("chat").getAllKeys(id));
      await change((chats, messages) => {
        chats.delete(id);
        for (const key of keys) messages.delete(key);
      });
    },
    removeMessages: (ids) =>
      change((_, messages) => {
        for (const id of ids) messages.delete(id);
      }),
    records: async <K extends RecordKind>(kind: K) =>
      (await settled(db.transaction(kind).objectStore(kind).getAll())) as Records[K][],
    saveRecords: (kind, records) =>
      changeRecords(kind, (store) => {
        for (const record of records) store.put(record);
      }),
    removeRecord: (kind, id) => changeRecords(kind, (store) => void store.delete(id)),
  };
}

const completed = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onerror = transaction.onabort = () => reject(transaction.error ?? new Error("not saved"));
  });

const settled = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the browser's database failed"));
  });
