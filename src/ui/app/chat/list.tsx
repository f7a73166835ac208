/** The chats of this browser, by day. */
import { isComposing } from "../base/keys.tsx";
import { useComputed, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { dayText } from "../base/format.ts";
import { Icon } from "../base/icons.tsx";
import { Menu } from "../base/menu.tsx";
import { routeText } from "../base/route.ts";
import { fileNameOf, saveFile } from "../base/save-file.ts";
import { chatMarkdown } from "./markdown-export.ts";
import { fileOf, readChatFile } from "./transfer.ts";
import { pathTo, type Chat } from "./tree.ts";

export function ChatList() {
  const { chats, words } = useApp();
  const groups = useComputed(() =>
    Map.groupBy(chats.list.value, ({ updated }) => dayText(words.value.chats.days, updated)),
  );
  const list = [...groups.value];
  return (
    <div class="chat-list">
      <Transfer />
      {list.length === 0 && <p class="quiet">{words.value.chats.none}</p>}
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
  const { chats: words } = useWords();
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
        notices.say(words.imported(read.chats.length));
      } catch {
        notices.say(words.notChats(file.name));
      }
    }
  };
  return (
    <div class="chat-list-head">
      <span>{words.heading}</span>
      <Menu
        label={words.transfer}
        items={() => [
          { label: words.import, icon: "upload", onChoose: () => input.current?.click() },
          { label: words.exportAll, icon: "download", onChoose: () => void exportAll() },
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
        aria-label={words.files}
        onChange={(event) => {
          void importFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}

function ChatItem({ chat }: { chat: Chat }) {
  const { chats, db, route, go, notices } = useApp();
  const { chats: words, chat: chatWords } = useWords();
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
    saveFile(fileNameOf(chat.title, "json"), JSON.stringify(file));
  };
  const exportMarkdown = async (): Promise<void> => {
    const messages = new Map((await db.messages(chat.id)).map((each) => [each.id, each]));
    const text = chatMarkdown(chat, pathTo(messages, chat.leaf), chatWords);
    saveFile(fileNameOf(chat.title, "md"), text, "text/markdown");
  };
  const remove = async (): Promise<void> => {
    if (isHere) go({ view: "chat" });
    const { messages, restore } = await chats.remove(chat.id);
    const undo = async (): Promise<void> => {
      await restore();
      if (isHere && route.peek().id === undefined) go({ view: "chat", id: chat.id });
    };
    notices.offerUndo({ text: words.deleted(chat.title, messages), undo });
  };
  if (isNamed.value) return <RenameField title={chat.title} onDone={rename} />;
  return (
    <li class="chat-item" data-here={isHere}>
      <a href={routeText({ view: "chat", id: chat.id })} aria-current={isHere ? "page" : undefined}>
        {chats.running.value.has(chat.id) && <span class="dot" role="img" aria-label={words.running} />}
        <span>{chat.title}</span>
      </a>
      <Menu
        label={words.more(chat.title)}
        items={() => [
          { label: words.rename, icon: "edit", onChoose: () => (isNamed.value = true) },
          { label: words.export, icon: "download", onChoose: () => void exportOne() },
          { label: words.exportMarkdown, icon: "file", onChoose: () => void exportMarkdown() },
          { label: words.delete, icon: "trash", isDangerous: true, onChoose: () => void remove() },
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
        aria-label={useWords().chats.name}
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
