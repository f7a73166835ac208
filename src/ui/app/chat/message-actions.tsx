/** The buttons below a message: copy, edit, ask again, go through its branches. */
import { useApp } from "../context.ts";
import { CopyButton } from "../base/copy.tsx";
import { Icon } from "../base/icons.tsx";
import { Menu, type MenuItem } from "../base/menu.tsx";
import type { Answering } from "./chat-types.ts";
import { siblingsOf, type Message } from "./tree.ts";

interface ActionProps {
  readonly message: Message;
  readonly isLast: boolean;
  readonly branches: number;
  readonly onEdit: (id: string | undefined) => void;
}

export function MessageActions({ message, isLast, branches, onEdit }: ActionProps) {
  const { chats, models } = useApp();
  const { role, chat } = message;
  const again = (by: Pick<Answering, "model" | "place"> = {}): void =>
    void chats.answer(chat, { parent: message.parent, ...by });
  const goOn: MenuItem = {
    label: "Go on with this answer",
    icon: "play",
    onChoose: () => void chats.answer(chat, { parent: message.parent, goOnWith: message }),
  };
  const place = chats.open.value?.chat.value.place ?? "server";
  const others = (models.list.value ?? []).map(({ name }): MenuItem => ({
    label: `Again with ${name.replace(/:latest$/, "")}`,
    icon: "retry",
    onChoose: () => again({ model: name, place: models.placeOf(name, place) }),
  }));
  const remove: MenuItem = {
    label: "Delete from here",
    icon: "trash",
    isDangerous: true,
    onChoose: () => void chats.removeMessage(chat, message),
  };
  const canGoOn = isLast && role === "assistant" && message.content !== "" && !message.calls?.length;
  return (
    <div class="actions">
      {branches > 1 && <Branches message={message} />}
      <CopyButton text={() => message.content} label="Copy" />
      {role !== "tool" && (
        <button type="button" class="icon-button" aria-label="Edit" title="Edit" onClick={() => onEdit(message.id)}>
          <Icon name="edit" size={16} />
        </button>
      )}
      {role === "assistant" && (
        <button
          type="button"
          class="icon-button"
          aria-label="Answer again"
          title="Answer again"
          onClick={() => again()}
        >
          <Icon name="retry" size={16} />
        </button>
      )}
      <Menu label="More" items={role === "assistant" ? [...(canGoOn ? [goOn] : []), ...others, remove] : [remove]}>
        <Icon name="more" size={16} />
      </Menu>
    </div>
  );
}

function Branches({ message }: { message: Message }) {
  const { chats } = useApp();
  const open = chats.open.value;
  if (!open) return null;
  const all = siblingsOf(open.messages.value, message);
  const at = all.findIndex(({ id }) => id === message.id);
  const choose = (to: Message | undefined): void => {
    if (to) void chats.choose(message.chat, to.id);
  };
  return (
    <span class="branches" role="group" aria-label={`Version ${at + 1} of ${all.length}`}>
      <button
        type="button"
        class="icon-button"
        aria-label="Version before"
        disabled={at === 0}
        onClick={() => choose(all[at - 1])}
      >
        <Icon name="left" size={16} />
      </button>
      <span>
        {at + 1} / {all.length}
      </span>
      <button
        type="button"
        class="icon-button"
        aria-label="Version after"
        disabled={at === all.length - 1}
        onClick={() => choose(all[at + 1])}
      >
        <Icon name="right" size={16} />
      </button>
    </span>
  );
}
