/** The chats of this browser: pinned ones, those in folders, and the others by day. */
import { useComputed, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useApp } from "../context.ts";
import { dayText } from "../base/format.ts";
import { FolderHead } from "./folders.tsx";
import type { Folder } from "./library-types.ts";
import { ListHead } from "./list-head.tsx";
import { CHAT_TYPE, ChatItem } from "./list-item.tsx";
import type { Chat } from "./tree.ts";

export function ChatList() {
  const { chats, library, words } = useApp();
  const groups = useComputed(() => {
    const folders = new Set(library.lists.value.folders.map(({ id }) => id));
    const pinned = chats.list.value.filter((chat) => chat.pinned);
    const others = chats.list.value.filter((chat) => !chat.pinned);
    const folderOf = ({ folder }: Chat): string => (folder && folders.has(folder) ? folder : "");
    const byFolder = Map.groupBy(others, folderOf);
    const byDay = Map.groupBy(byFolder.get("") ?? [], ({ updated }) => dayText(words.value.chats.days, updated));
    return { pinned, byFolder, byDay: [...byDay] };
  });
  const { pinned, byFolder, byDay } = groups.value;
  const { folders } = library.lists.value;
  const isEmpty = chats.list.value.length === 0;
  return (
    <div class="chat-list">
      <ListHead />
      {isEmpty && <p class="quiet">{words.value.chats.none}</p>}
      {pinned.length > 0 && (
        <DropSection label={words.value.chats.pinned} target={{ pinned: true }}>
          <h2>{words.value.chats.pinned}</h2>
          <Items chats={pinned} />
        </DropSection>
      )}
      {folders.map((folder) => (
        <FolderSection key={folder.id} folder={folder} chats={byFolder.get(folder.id) ?? []} />
      ))}
      {byDay.map(([day, each]) => (
        <DropSection key={day} label={day} target={{ folder: null, pinned: false }}>
          <h2>{day}</h2>
          <Items chats={each} />
        </DropSection>
      ))}
    </div>
  );
}

function FolderSection({ folder, chats }: { folder: Folder; chats: readonly Chat[] }) {
  return (
    <DropSection label={folder.name} target={{ folder: folder.id, pinned: false }}>
      <FolderHead folder={folder} count={chats.length} />
      {!folder.isClosed && <Items chats={chats} />}
    </DropSection>
  );
}

const Items = ({ chats }: { chats: readonly Chat[] }) => (
  <ul>
    {chats.map((chat) => (
      <ChatItem key={chat.id} chat={chat} />
    ))}
  </ul>
);

interface DropProps {
  readonly label: string;
  /** The fields to set in a chat that is dropped here. */
  readonly target: Partial<Chat>;
  readonly children: ComponentChildren;
}

function DropSection({ label, target, children }: DropProps) {
  const { chats } = useApp();
  const isOver = useSignal(false);
  return (
    <section
      aria-label={label}
      class="drop"
      data-over={isOver.value}
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes(CHAT_TYPE)) return;
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={() => (isOver.value = false)}
      onDrop={(event) => {
        isOver.value = false;
        const id = event.dataTransfer?.getData(CHAT_TYPE);
        if (!id) return;
        event.preventDefault();
        void chats.change(id, target);
      }}
    >
      {children}
    </section>
  );
}
