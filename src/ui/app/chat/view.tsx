/** The view of one chat, and of the one that is about to begin. */
import { useComputed, useSignal } from "@preact/signals";
import { useCallback, useEffect } from "preact/hooks";
import { useApp } from "../context.ts";
import { Icon, Mark } from "../base/icons.tsx";
import { ViewHead } from "../base/view-head.tsx";
import type { Draft } from "./chat-types.ts";
import { Composer } from "./composer.tsx";
import { ChatLog } from "./log.tsx";
import { OptionsDialog, type ChatSettings } from "./options.tsx";
import { pathTo, type Place } from "./tree.ts";

const NOTHING: ChatSettings = { system: "", options: {}, tools: "" };

export function ChatView() {
  const { chats, route, models, prefs, go, notices } = useApp();
  const { id } = route.value;
  const next = useSignal<ChatSettings>(NOTHING);
  const editing = useSignal<string | undefined>(undefined);
  const isOptionsOpen = useSignal(false);
  const problem = useSignal("");
  const open = chats.open.value;
  const isOpen = open !== undefined && open.chat.value.id === id;
  const chat = isOpen ? open.chat.value : undefined;
  const fallback = useComputed(() => {
    const names = models.list.value?.map(({ name }) => name) ?? [];
    return names.includes(prefs.model.value) ? prefs.model.value : (names[0] ?? "");
  });
  useEffect(() => {
    editing.value = undefined;
    void chats.show(id).then(() => {
      if (id === undefined || id !== route.peek().id || chats.open.peek()) return;
      notices.say("This chat is not in this browser: it was deleted, or begun elsewhere.");
      go({ view: "chat" });
    });
  }, [id]);
  useOptionsKey(() => (isOptionsOpen.value = true));
  const model = chat?.model ?? fallback.value;
  const place = chat?.place ?? models.placeOf(model, prefs.place.value);
  const settings = chat ?? next.value;
  const send = async (draft: Draft): Promise<boolean> => {
    if (chat) return chats.ask(chat.id, draft);
    const begun = await chats.begin({ ...next.value, model, place }, draft);
    next.value = NOTHING;
    go({ view: "chat", id: begun });
    return true;
  };
  const choose = (name: string, where: Place): void => {
    [prefs.model.value, prefs.place.value] = [name, where];
    if (chat) void chats.change(chat.id, { model: name, place: where });
  };
  const change = (fields: Partial<ChatSettings>): void => {
    if (chat) void chats.change(chat.id, fields);
    else next.value = { ...next.value, ...fields };
  };
  const editLast = (): void => {
    const mine = open && pathTo(open.messages.value, open.chat.value.leaf).findLast(({ role }) => role === "user");
    if (mine && isOpen) editing.value = mine.id;
  };
  const onEdit = useCallback((message: string | undefined) => (editing.value = message), []);
  return (
    <div class="chat-view">
      <ViewHead title={chat?.title ?? "New chat"}>
        <button
          type="button"
          class="icon-button"
          aria-label="Settings of this chat"
          title="Settings of this chat (Ctrl ,)"
          data-marked={settings.system !== "" || Object.keys(settings.options).length > 0 || settings.tools !== ""}
          onClick={() => (isOptionsOpen.value = true)}
        >
          <Icon name="sliders" />
        </button>
      </ViewHead>
      {isOpen ? <ChatLog key={id} open={open} editing={editing.value} onEdit={onEdit} /> : <Welcome />}
      <Composer key={id ?? "new"} {...{ chat, model, place }} onModel={choose} onSend={send} onEditLast={editLast} />
      {isOptionsOpen.value && (
        <OptionsDialog {...{ settings, problem }} onChange={change} onClose={() => (isOptionsOpen.value = false)} />
      )}
    </div>
  );
}

function useOptionsKey(onPress: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== ",") return;
      event.preventDefault();
      onPress();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function Welcome() {
  const { models, api } = useApp();
  const list = models.list.value;
  const { problem } = models;
  return (
    <div class="welcome">
      <Mark size={44} />
      <h2>What is on your mind?</h2>
      {problem.value !== undefined && api.isReachable.value && <p class="problem">{problem.value}</p>}
      {list?.length === 0 && (
        <p class="quiet">
          This server has no model yet. <a href="#/models">Bring one</a>, and begin.
        </p>
      )}
      <p class="quiet">Models run on your own machine. Chats stay in this browser.</p>
    </div>
  );
}
