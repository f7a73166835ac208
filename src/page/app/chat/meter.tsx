/** Shows how much of a model's context a chat uses. */
import { useComputed } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { countText } from "../base/format.ts";
import { pathTo, type Chat } from "./tree.ts";

export function ContextMeter({ chat }: { chat: Chat }) {
  const { chats, models, engine, webllm } = useApp();
  const running = chats.running.value.get(chat.id);
  const stats = useComputed(() => {
    const open = chats.open.value;
    return open && pathTo(open.messages.value, open.chat.value.leaf).findLast((each) => each.stats)?.stats;
  });
  const last = stats.value;
  const [live] = running?.lives.values() ?? [];
  const said = live ? live.shown.value.pieces + 1 : 0;
  const used = (last ? last.promptTokens + last.tokens : 0) + said;
  const size = {
    server: models.loadedOf(chat.model)?.context_length,
    page: engine.model.value?.contextLength,
    webllm: webllm.model.value?.contextLength,
  }[chat.place];
  if (used === 0) return null;
  const { composer: words } = useWords();
  const text =
    size === undefined ? words.contextUsed(countText(used)) : words.contextOf(countText(used), countText(size));
  return (
    <span class="meter-text" title={words.contextHint(countText(used))}>
      {size !== undefined && (
        <meter aria-label={words.context} min={0} max={size} high={size * 0.9} value={Math.min(used, size)} />
      )}
      <span>{text}</span>
    </span>
  );
}
