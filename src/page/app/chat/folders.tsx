/** Folders of chats: their heads in the list, and the dialog that moves a chat into one. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "../base/dialog.tsx";
import { Icon } from "../base/icons.tsx";
import { Menu } from "../base/menu.tsx";
import type { Folder } from "./library-types.ts";
import { RenameField } from "./rename-field.tsx";
import type { Chat } from "./tree.ts";

/** Asks for a name, and makes a folder. */
export function useAddFolder(): () => Promise<Folder | undefined> {
  const { library, questions } = useApp();
  const { chats: words, base } = useWords();
  return async () => {
    const field = { label: words.folderName, first: "" };
    const name = await questions.ask({ title: words.newFolder, action: base.create, field });
    return name ? library.addFolder(name) : undefined;
  };
}

export function FolderHead({ folder, count }: { folder: Folder; count: number }) {
  const { library, notices } = useApp();
  const { chats: words } = useWords();
  const isNamed = useSignal(false);
  const rename = (name: string): void => {
    isNamed.value = false;
    if (name.trim() !== "") void library.save("folders", [{ ...folder, name: name.trim().slice(0, 200) }]);
  };
  const remove = async (): Promise<void> => {
    const undo = await library.remove("folders", folder);
    notices.offerUndo({ text: words.deletedFolder(folder.name), undo });
  };
  if (isNamed.value) return <RenameField label={words.folderName} title={folder.name} onDone={rename} />;
  return (
    <div class="folder-head">
      <h2>
        <button
          type="button"
          aria-expanded={!folder.isClosed}
          onClick={() => void library.save("folders", [{ ...folder, isClosed: !folder.isClosed }])}
        >
          <Icon name={folder.isClosed ? "right" : "down"} size={14} />
          <span>{folder.name}</span>
          <span class="count">{count}</span>
        </button>
      </h2>
      <Menu
        label={words.moreFolder(folder.name)}
        items={() => [
          { label: words.rename, icon: "edit", onChoose: () => (isNamed.value = true) },
          { label: words.deleteFolder, icon: "trash", isDangerous: true, onChoose: () => void remove() },
        ]}
      >
        <Icon name="more" size={16} />
      </Menu>
    </div>
  );
}

export function MoveDialog({ chat, onClose }: { chat: Chat; onClose: () => void }) {
  const { chats, library } = useApp();
  const { chats: words } = useWords();
  const add = useAddFolder();
  const { folders } = library.lists.value;
  const isUnfiled = !folders.some(({ id }) => id === chat.folder);
  const move = (folder: string | null): void => {
    onClose();
    void chats.change(chat.id, { folder });
  };
  const moveToNew = async (): Promise<void> => {
    onClose();
    const folder = await add();
    if (folder) void chats.change(chat.id, { folder: folder.id });
  };
  return (
    <Dialog title={words.moveTitle(chat.title)} onClose={onClose}>
      <ul class="choose-list">
        <li>
          <button type="button" aria-current={isUnfiled} onClick={() => move(null)}>
            {words.noFolder}
          </button>
        </li>
        {folders.map(({ id, name }) => (
          <li key={id}>
            <button type="button" aria-current={id === chat.folder} onClick={() => move(id)}>
              <Icon name="folder" size={16} />
              <span>{name}</span>
            </button>
          </li>
        ))}
        <li>
          <button type="button" onClick={() => void moveToNew()}>
            <Icon name="plus" size={16} />
            <span>{words.newFolder}</span>
          </button>
        </li>
      </ul>
    </Dialog>
  );
}
