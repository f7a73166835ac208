/** The view of a chat, existing or new. */
import { useSignal } from "@preact/signals";
import { useCallback, useEffect, useLayoutEffect } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { ViewHead } from "../base/view-head.tsx";
import type { AnsweredBy, NewMessage } from "./chat-types.ts";
import { CompareButton, CompareLine, useOthers } from "./compare.tsx";
import { Composer } from "./composer.tsx";
import { ChatLog } from "./log.tsx";
import { OptionsDialog, type ChatSettings } from "./options.tsx";
import type { Editing } from "./message.tsx";
import { SystemPills } from "./prompt-choice.tsx";
import { pathTo, type Place } from "./tree.ts";
import { Greeting, Suggestions, type Suggestion } from "./welcome.tsx";
import { IconButton } from "../base/controls.tsx";

const NOTHING: ChatSettings = { system: "", options: {}, tools: "" };

export function ChatView() {
  const { chats, route, models, prefs, go } = useApp();
  const { id } = route.value;
  const next = useSignal<ChatSettings>(NOTHING);
  const words = useWords();
  const editing = useSignal<Editing | undefined>(undefined);
  const suggestion = useSignal<Suggestion | undefined>(undefined);
  const isOptionsOpen = useSignal(false);
  const problem = useSignal("");
  const others = useSignal<readonly AnsweredBy[]>([]);
  const open = chats.open.value;
  const isOpen = open !== undefined && open.chat.value.id === id;
  const chat = isOpen ? open.chat.value : undefined;
  useEffect(() => void ([editing.value, suggestion.value] = [undefined, undefined]), [id]);
  useShown(id);
  useOptionsKey(() => (isOptionsOpen.value = true));
  const model = chat?.model ?? models.preferred(prefs.model.value);
  const place = chat?.place ?? models.placeOf(model, prefs.place.value);
  const settings = chat ?? next.value;
  const beside = useOthers({ model, others });
  const send = async (draft: NewMessage): Promise<boolean> => {
    if (chat) return chats.ask(chat.id, draft, { others: beside });
    const begun = await chats.begin({ ...next.value, model, place }, draft, beside);
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
    if (mine && isOpen) editing.value = { id: mine.id };
  };
  const onEdit = useCallback((message: Editing | undefined) => (editing.value = message), []);
  return (
    <div class="chat-view" data-new={id === undefined}>
      <ViewHead title={chat?.title ?? words.base.newChat}>
        <CompareButton {...{ model, others }} />
        <SettingsButton settings={settings} onClick={() => (isOptionsOpen.value = true)} />
      </ViewHead>
      {isOpen && <ChatLog key={id} open={open} editing={editing.value} onEdit={onEdit} />}
      {id === undefined && <Greeting />}
      <CompareLine {...{ model, others }} />
      <Composer
        key={id ?? "new"}
        {...{ chat, model, place, suggestion }}
        onModel={choose}
        onSend={send}
        onEditLast={editLast}
      />
      {id === undefined && <SystemPills system={next.value.system} onChange={(system) => change({ system })} />}
      {id === undefined && <Suggestions onChoose={(each) => (suggestion.value = { ...each })} />}
      {isOptionsOpen.value && (
        <OptionsDialog {...{ settings, problem }} onChange={change} onClose={() => (isOptionsOpen.value = false)} />
      )}
    </div>
  );
}

function SettingsButton({ settings, onClick }: { settings: ChatSettings; onClick: () => void }) {
  const { options: words } = useWords();
  const { system, options, tools, servers = [] } = settings;
  return (
    <IconButton
      icon="sliders"
      label={words.title}
      title={`${words.title} (Ctrl ,)`}
      data-marked={system !== "" || Object.keys(options).length > 0 || tools !== "" || servers.length > 0}
      onClick={onClick}
    />
  );
}

/** Opens a chat; reports a missing one. */
function useShown(id: string | undefined): void {
  const { chats, route, notices, go, words } = useApp();
  useEffect(() => {
    void chats.show(id).then(() => {
      if (id === undefined || id !== route.peek().id || chats.open.peek()) return;
      notices.say(words.peek().chats.notHere);
      go({ view: "chat" });
    });
  }, [id]);
}

function useOptionsKey(onPress: () => void): void {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== ",") return;
      event.preventDefault();
      onPress();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}
