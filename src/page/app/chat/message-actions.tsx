/** The buttons below a message: copy, edit, ask again, switch branches. */
import { useApp, useWords } from "../context.ts";
import { CopyButton, copyText } from "../base/copy.tsx";
import { Icon } from "../base/icons.tsx";
import { Menu, type MenuItem } from "../base/menu.tsx";
import { shortName } from "../models/models.ts";
import { messageMarkdown } from "./markdown-export.ts";
import type { Answering } from "./chat-types.ts";
import { SpeakButton } from "./speak-button.tsx";
import { siblingsOf, withDescendants, type Message } from "./tree.ts";
import { IconButton } from "../base/controls.tsx";

interface ActionProps {
  readonly message: Message;
  readonly isLast: boolean;
  readonly branches: number;
  readonly onEdit: (editing: { readonly id: string }) => void;
}

export function MessageActions({ message, isLast, branches, onEdit }: ActionProps) {
  const { chats } = useApp();
  const { chat: words } = useWords();
  const { role, chat } = message;
  const items = useMenuItems(message, isLast);
  return (
    <div class="actions">
      {branches > 1 && <Branches message={message} />}
      {role === "assistant" && <SpeakButton message={message} />}
      <CopyButton text={() => message.content} label={words.copy} />
      {role !== "tool" && (
        <IconButton icon="edit" label={words.edit} size={16} data-edit onClick={() => onEdit({ id: message.id })} />
      )}
      {role === "assistant" && (
        <IconButton
          icon="retry"
          label={words.again}
          size={16}
          onClick={() => void chats.answer(chat, { parent: message.parent })}
        />
      )}
      <Menu label={words.more} items={items}>
        <Icon name="more" size={16} />
      </Menu>
    </div>
  );
}

function useMenuItems(message: Message, isLast: boolean): () => readonly MenuItem[] {
  const { chats, models, notices } = useApp();
  const { chat: words } = useWords();
  const { role, chat, parent } = message;
  const again = (by: Pick<Answering, "model" | "place">): void => void chats.answer(chat, { parent, ...by });
  const remove = async (): Promise<void> => {
    const removed = await chats.removeMessage(chat, message);
    if (removed) notices.offerUndo({ text: words.deleted(removed.messages), undo: removed.restore });
  };
  const removal = (): MenuItem => {
    const gone = withDescendants(chats.open.peek()?.messages.peek() ?? new Map(), message.id);
    return { label: words.deleteFrom(gone.size), icon: "trash", isDangerous: true, onChoose: () => void remove() };
  };
  const copy = (): MenuItem => ({
    label: words.copyMarkdown,
    icon: "copy",
    onChoose: () =>
      void copyText(messageMarkdown(message, words)).then(
        () => notices.say(words.copied),
        (error: unknown) => notices.say(String(error)),
      ),
  });
  return () => {
    if (role !== "assistant") return [copy(), removal()];
    const canGoOn = isLast && message.content !== "" && !message.calls?.length;
    const goOn: MenuItem = {
      label: words.goOnWith,
      icon: "play",
      onChoose: () => void chats.answer(chat, { parent, goOnWith: message }),
    };
    const place = chats.open.peek()?.chat.peek().place ?? "server";
    const others = models.chatting.peek().map(({ name }): MenuItem => ({
      label: words.againWith(shortName(name)),
      icon: "retry",
      onChoose: () => again({ model: name, place: models.placeOf(name, place) }),
    }));
    return [copy(), ...(canGoOn ? [goOn] : []), ...others, removal()];
  };
}

function Branches({ message }: { message: Message }) {
  const { chats } = useApp();
  const { chat: words } = useWords();
  const open = chats.open.value;
  if (!open) return null;
  const all = siblingsOf(open.messages.value, message);
  const at = all.findIndex(({ id }) => id === message.id);
  const choose = (to: Message | undefined): void => {
    if (to) void chats.choose(message.chat, to.id);
  };
  return (
    <span class="branches" role="group" aria-label={words.version(at + 1, all.length)}>
      <IconButton
        icon="left"
        label={words.versionBefore}
        size={16}
        disabled={at === 0}
        onClick={() => choose(all[at - 1])}
      />
      <span>
        {at + 1} / {all.length}
      </span>
      <IconButton
        icon="right"
        label={words.versionAfter}
        size={16}
        disabled={at === all.length - 1}
        onClick={() => choose(all[at + 1])}
      />
    </span>
  );
}
