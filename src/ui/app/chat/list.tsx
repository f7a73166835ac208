/** The chats of this browser, by day. */
import { isComposing } from "../base/keys.tsx";
import { useComputed, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { useApp } from "../context.ts";
import { dayText } from "../base/format.ts";
import { Icon } from "../base/icons.tsx";
import { Menu } from "../base/menu.tsx";
import { routeText } from "../base/route.ts";
import { saveFile } from "../base/save-file.ts";
import { fileOf, readChatFile } from "./transfer.ts";
import type { Chat } from "./tree.ts";

export function ChatList() {
  const { chats } = useApp();
  const groups = useComputed(() => Map.groupBy(chats.list.value, ({ updated }) => dayText(updated)));
  const list = [...groups.value];
  return (
    <div class="chat-list">
      <Transfer />
      {list.length === 0 && <p class="quiet">Chats are kept in this browser, and nowhere else.</p>}
      {list.map(([day, each]) => (
        <section key={day} aria-label={day}>
          <h2>{day}</h2>
          <ul>
            {each.map((chat) => (
              <ChatItem key={chat.id} chat={chat} />
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

/** All chats out of this browser, or some into it. */
function Transfer() {
  const { chats, notices } = useApp();
  const input = useRef<HTMLInputElement>(null);
  const exportAll = async (): Promise<void> => {
    const all = await chats.everything();
    saveFile(
      `hearth-chats-${new Date().toISOString().slice(0, 10)}.json`,
      JSON.stringify(fileOf(all.chats, all.messages)),
    );
  };
  const importFiles = async (files: readonly File[]): Promise<void> => {
    for (const file of files) {
      try {
        const read = readChatFile(await file.text());
        await chats.add(read.chats, read.messages);
        notices.say(`${read.chats.length} ${read.chats.length === 1 ? "chat" : "chats"} came out of ${file.name}.`);
      } catch (error) {
        notices.say(`${file.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  };
  return (
    <div class="chat-list-head">
      <span>Chats</span>
      <Menu
        label="Import and export"
        items={[
          { label: "Import chats", icon: "upload", onChoose: () => input.current?.click() },
          { label: "Export all chats", icon: "download", onChoose: () => void exportAll() },
        ]}
      >
        <Icon name="more" size={16} />
      </Menu>
      <input
        ref={input}
        type="file"
        accept=".json,application/json"
        multiple
        hidden
        aria-label="Files with chats"
        onChange={(event) => {
          void importFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}

function ChatItem({ chat }: { chat: Chat }) {
  const { chats, route, go } = useApp();
  const isNamed = useSignal(false);
  const isHere = route.value.view === "chat" && route.value.id === chat.id;
  const rename = (title: string): void => {
    isNamed.value = false;
    if (title.trim() !== "") void chats.change(chat.id, { title: title.trim().slice(0, 200) });
  };
  const exportOne = async (): Promise<void> => {
    const { messages } = await chats.everything();
    const file = fileOf(
      [chat],
      messages.filter((each) => each.chat === chat.id),
    );
    saveFile(`${chat.title.replace(/[^\w-]+/g, "-").slice(0, 60)}.json`, JSON.stringify(file));
  };
  const remove = (): void => {
    if (!confirm(`Delete "${chat.title}"? It cannot be undone.`)) return;
    if (isHere) go({ view: "chat" });
    void chats.remove(chat.id);
  };
  if (isNamed.value) return <RenameField title={chat.title} onDone={rename} />;
  return (
    <li class="chat-item" data-here={isHere}>
      <a href={routeText({ view: "chat", id: chat.id })} aria-current={isHere ? "page" : undefined}>
        {chats.running.value.has(chat.id) && <span class="dot" role="img" aria-label="Is being answered" />}
        <span>{chat.title}</span>
      </a>
      <Menu
        label={`More about ${chat.title}`}
        items={[
          { label: "Rename", icon: "edit", onChoose: () => (isNamed.value = true) },
          { label: "Export", icon: "download", onChoose: () => void exportOne() },
          { label: "Delete", icon: "trash", isDangerous: true, onChoose: remove },
        ]}
      >
        <Icon name="more" size={16} />
      </Menu>
    </li>
  );
}

function RenameField({ title, onDone }: { title: string; onDone: (title: string) => void }) {
  const focus = (input: HTMLInputElement | null): void => input?.select();
  return (
    <li class="chat-item">
      <input
        ref={focus}
        class="rename"
        aria-label="Name of the chat"
        defaultValue={title}
        onBlur={(event) => onDone(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (isComposing(event)) return;
          if (event.key === "Enter") event.currentTarget.blur();
          if (event.key !== "Escape") return;
          event.stopPropagation();
          onDone(title);
        }}
      />
    </li>
  );
}
