/** A model of the server: its details, its state in memory, and its actions. */
import { useSignal, useSignalEffect } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { agoText, bytesText, countText, untilText } from "../base/format.ts";
import { Icon } from "../base/icons.tsx";
import { Menu, type MenuItem } from "../base/menu.tsx";
import { reasonOf } from "../base/reason.ts";
import { Signs } from "../chat/model-menu.tsx";
import { canChat, shortName, type LoadedModel, type StoredModel } from "./models.ts";
import { SmallButton } from "../base/controls.tsx";

interface CardProps {
  readonly model: StoredModel;
  readonly onShow: () => void;
  readonly onCreate: () => void;
}

export function ModelCard({ model, onShow, onCreate }: CardProps) {
  const { models, prefs, go } = useApp();
  const { models: words } = useWords();
  const { name, size, modified_at: modified, details, capabilities = [] } = model;
  const loaded = models.loadedOf(name);
  const items = useMenuItems({ model, onShow, onCreate });
  const chat = (): void => {
    prefs.model.value = name;
    go({ view: "chat" });
  };
  const facts = [
    details.family,
    details.parameter_size,
    details.quantization_level,
    bytesText(size),
    ...(capabilities.includes("embedding") ? [words.embeds] : []),
    agoText(Date.parse(modified)),
  ];
  return (
    <li class="card">
      <div class="card-line">
        {loaded && <span class="dot still" />}
        <strong title={name}>{shortName(name)}</strong>
        <Signs model={model} />
        <span class="grow" />
        {canChat(model) && <SmallButton onClick={chat}>{words.chat}</SmallButton>}
        <Menu label={words.more(name)} items={items}>
          <Icon name="more" size={16} />
        </Menu>
      </div>
      <p class="quiet">{facts.filter(Boolean).join(" · ")}</p>
      {loaded && <InMemory model={loaded} />}
    </li>
  );
}

/** A model in memory that the list no longer has. */
export const LeftoverCard = ({ model }: { model: LoadedModel }) => (
  <li class="card">
    <div class="card-line">
      <span class="dot still" />
      <strong>{shortName(model.name)}</strong>
    </div>
    <InMemory model={model} />
  </li>
);

function InMemory({ model }: { model: LoadedModel }) {
  const { models } = useApp();
  const { models: words } = useWords();
  const { size, size_vram: vram, expires_at: expires, context_length: context } = model;
  const now = useSignal(Date.now());
  useSignalEffect(() => {
    void models.loaded.value; // at every poll
    now.value = Date.now();
  });
  const share = size > 0 ? Math.round((vram / size) * 100) : 0;
  const leaves = untilText(Date.parse(expires), now.value);
  const facts = [
    words.inMemory(bytesText(size)),
    share === 0 ? words.onCpu : words.onGpu(share),
    words.context(countText(context)),
    leaves === undefined ? words.stays : words.leaves(leaves),
  ];
  return <p>{facts.join(" · ")}</p>;
}

function useMenuItems({ model, onShow, onCreate }: CardProps): () => readonly MenuItem[] {
  const { api, models, notices, questions, jobs } = useApp();
  const words = useWords();
  const { name } = model;
  const { models: texts } = words;
  const report = (error: unknown): void => notices.say(reasonOf(words, error));
  const setLoaded = (more: object): void => {
    api.json("/api/generate", { body: { model: name, ...more } }).then(() => void models.refreshLoaded(), report);
  };
  const copy = async (): Promise<void> => {
    const field = { label: texts.copyName, first: `${name.split(":")[0]}-copy` };
    const destination = await questions.ask({ title: texts.copyTitle(name), action: words.chat.copy, field });
    if (destination === undefined) return;
    await api.json("/api/copy", { body: { source: name, destination } });
    await models.refresh();
  };
  const remove = useRemoval(model);
  return () => [
    { label: texts.show, icon: "file", onChoose: onShow },
    models.loadedOf(name)
      ? { label: texts.unload, icon: "stop", onChoose: () => setLoaded({ keep_alive: 0 }) }
      : { label: texts.load, icon: "play", onChoose: () => setLoaded({}) },
    { label: texts.update, icon: "download", onChoose: () => void jobs.pull(name) },
    { label: texts.createFrom, icon: "plus", onChoose: onCreate },
    { label: words.chat.copy, icon: "copy", onChoose: () => void copy().catch(report) },
    { label: words.base.delete, icon: "trash", isDangerous: true, onChoose: remove },
  ];
}

/** Hides the model, and deletes it once the time for undo is over. */
function useRemoval({ name, size }: StoredModel): () => void {
  const { models, engine, notices } = useApp();
  const words = useWords();
  const finish = async (): Promise<void> => {
    try {
      await models.remove(name);
      await engine.dropGone(new Set(models.list.value?.map(({ digest }) => digest)));
    } catch (error) {
      notices.say(reasonOf(words, error));
    }
  };
  return () => {
    models.setLeaving(name, true);
    const text = words.models.deleted(shortName(name), bytesText(size));
    notices.offerUndo({ text, undo: () => models.setLeaving(name, false), finish });
  };
}
