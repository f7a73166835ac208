/** A chat in the list, with its actions. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Icon } from "../base/icons.tsx";
import { Menu } from "../base/menu.tsx";
import { routeText } from "../base/route.ts";
import { fileNameOf, saveFile } from "../base/save-file.ts";
import { MoveDialog } from "./folders.tsx";
import { RenameField } from "./rename-field.tsx";
import { chatMarkdown } from "./markdown-export.ts";
import { fileOf } from "./transfer.ts";
import { pathTo, type Chat } from "./tree.ts";

/** Data type of a dragged chat: its id. */
export const CHAT_TYPE = "application/x-hearth-chat";

export function ChatItem({ chat }: { chat: Chat }) {
  const { chats, route, go, notices } = useApp();
  const { chats: words, chat: texts, base } = useWords();
  const isNamed = useSignal(false);
  const isMoving = useSignal(false);
  const isHere = route.value.view === "chat" && route.value.id === chat.id;
  const rename = (title: string): void => {
    isNamed.value = false;
    const name = title.trim().slice(0, 200);
    if (name !== "" && name !== chat.title) void chats.change(chat.id, { title: name, titled: "person" });
  };
  const { exportOne, exportMarkdown } = useExports(chat);
  const remove = async (): Promise<void> => {
    if (isHere) go({ view: "chat" });
    const { messages, restore } = await chats.remove(chat.id);
    const undo = async (): Promise<void> => {
      await restore();
      if (isHere && route.peek().id === undefined) go({ view: "chat", id: chat.id });
    };
    notices.offerUndo({ text: words.deleted(chat.title, messages), undo });
  };
  if (isNamed.value) {
    return (
      <li class="chat-item">
        <RenameField label={words.name} title={chat.title} onDone={rename} />
      </li>
    );
  }
  return (
    <li
      class="chat-item"
      data-here={isHere}
      draggable
      onDragStart={({ dataTransfer }) => dataTransfer?.setData(CHAT_TYPE, chat.id)}
    >
      <a href={routeText({ view: "chat", id: chat.id })} aria-current={isHere ? "page" : undefined} draggable={false}>
        {chats.running.value.has(chat.id) && <span class="dot" role="img" aria-label={texts.answering} />}
        <span>{chat.title}</span>
      </a>
      <Menu
        label={words.more(chat.title)}
        items={() => [
          {
            label: chat.pinned ? words.unpin : words.pin,
            icon: "pin",
            onChoose: () => void chats.change(chat.id, { pinned: !chat.pinned }),
          },
          { label: words.move, icon: "folder", onChoose: () => (isMoving.value = true) },
          { label: words.rename, icon: "edit", onChoose: () => (isNamed.value = true) },
          { label: words.export, icon: "download", onChoose: () => void exportOne() },
          { label: words.exportMarkdown, icon: "file", onChoose: () => void exportMarkdown() },
          { label: base.delete, icon: "trash", isDangerous: true, onChoose: () => void remove() },
        ]}
      >
        <Icon name="more" size={16} />
      </Menu>
      {isMoving.value && <MoveDialog chat={chat} onClose={() => (isMoving.value = false)} />}
    </li>
  );
}

/** Functions that save a chat as a file. */
function useExports(chat: Chat) {
  const { chats, db, library } = useApp();
  const { chat: words } = useWords();
  const exportOne = async (): Promise<void> => {
    const { messages } = await chats.everything();
    const file = fileOf(
      [chat],
      messages.filter((each) => each.chat === chat.id),
      { folders: library.lists.peek().folders.filter(({ id }) => id === chat.folder) },
    );
    saveFile(fileNameOf(chat.title, "json"), JSON.stringify(file));
  };
  const exportMarkdown = async (): Promise<void> => {
    const messages = new Map((await db.messages(chat.id)).map((each) => [each.id, each]));
    const text = chatMarkdown(chat, pathTo(messages, chat.leaf), words);
    saveFile(fileNameOf(chat.title, "md"), text, "text/markdown");
  };
  return { exportOne, exportMarkdown };
}
