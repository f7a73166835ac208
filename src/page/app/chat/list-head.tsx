/** The head of the list of chats. */
import { useRef } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { Icon } from "../base/icons.tsx";
import { Menu } from "../base/menu.tsx";
import { saveFile } from "../base/save-file.ts";
import { useAddFolder } from "./folders.tsx";
import { fileOf, readChatFile } from "./transfer.ts";

/** The heading of the list, and its menu: new folder, export all chats, import chats. */
export function ListHead() {
  const { chats, notices, library } = useApp();
  const { chats: words } = useWords();
  const input = useRef<HTMLInputElement>(null);
  const exportAll = async (): Promise<void> => {
    const all = await chats.everything();
    saveFile(
      `hearth-chats-${new Date().toISOString().slice(0, 10)}.json`,
      JSON.stringify(fileOf(all.chats, all.messages, library.lists.peek())),
    );
  };
  const addFolder = useAddFolder();
  const importFiles = async (files: readonly File[]): Promise<void> => {
    for (const file of files) {
      try {
        const read = readChatFile(await file.text());
        await chats.add(await library.takeIn(read), read.messages);
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
          { label: words.newFolder, icon: "folder", onChoose: () => void addFolder() },
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
