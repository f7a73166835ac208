/** The models of the server: those in memory, those on disk, and those that are on their way. */
import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useApp } from "../context.ts";
import { agoText, bytesText, countText, untilText } from "../base/format.ts";
import { Icon } from "../base/icons.tsx";
import { Menu } from "../base/menu.tsx";
import { ViewHead } from "../base/view-head.tsx";
import { CreateDialog } from "./create.tsx";
import { InPage } from "./in-page.tsx";
import { JobList } from "./job-list.tsx";
import type { LoadedModel, StoredModel } from "./models.ts";
import { ShowDialog } from "./show.tsx";

/** How often models in memory are looked at while they are shown. */
const LOOK_MS = 2000;

type Over = { readonly kind: "show"; readonly name: string } | { readonly kind: "create"; readonly from: string };

export function ModelsView() {
  const { models } = useApp();
  const over = useSignal<Over | undefined>(undefined);
  const close = (): void => void (over.value = undefined);
  useEffect(() => {
    void models.refresh();
    const timer = setInterval(() => void models.refreshLoaded().catch(() => {}), LOOK_MS); // a banner says it
    return () => clearInterval(timer);
  }, []);
  const list = models.list.value;
  return (
    <div class="view">
      <ViewHead title="Models">
        <button
          type="button"
          class="button"
          onClick={() => (over.value = { kind: "create", from: list?.[0]?.name ?? "hearth" })}
        >
          <Icon name="plus" size={16} />
          Create
        </button>
      </ViewHead>
      <div class="view-body">
        <PullField />
        <JobList />
        <InMemory />
        <section class="section" aria-label="On the server">
          <h2>On the server</h2>
          {models.problem.value !== undefined && <p class="problem">{models.problem.value}</p>}
          {list?.length === 0 && <p class="quiet">There is none yet. Bring one by its name, as in llama3.2:1b.</p>}
          <ul class="cards">
            {(list ?? []).map((model) => (
              <ModelCard key={model.name} model={model} onOver={(next) => (over.value = next)} />
            ))}
          </ul>
        </section>
        <InPage />
      </div>
      {over.value?.kind === "show" && <ShowDialog name={over.value.name} onClose={close} />}
      {over.value?.kind === "create" && <CreateDialog from={over.value.from} onClose={close} />}
    </div>
  );
}

function PullField() {
  const { jobs } = useApp();
  const name = useSignal("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (name.value.trim() === "") return;
    void jobs.pull(name.value.trim());
    name.value = "";
  };
  return (
    <form class="pull" onSubmit={submit}>
      <input
        class="input"
        aria-label="Name of a model to bring"
        placeholder="Bring a model: llama3.2:1b, hf.co/owner/model-GGUF:Q4_K_M"
        value={name.value}
        onInput={(event) => (name.value = event.currentTarget.value)}
      />
      <button type="submit" class="button primary" disabled={name.value.trim() === ""}>
        <Icon name="download" size={16} />
        Pull
      </button>
    </form>
  );
}

function InMemory() {
  const { models } = useApp();
  const loaded = models.loaded.value;
  if (loaded.length === 0) return null;
  return (
    <section class="section" aria-label="In memory">
      <h2>In memory</h2>
      <ul class="cards">
        {loaded.map((model) => (
          <LoadedCard key={model.name} model={model} />
        ))}
      </ul>
    </section>
  );
}

function LoadedCard({ model }: { model: LoadedModel }) {
  const { api, models, notices } = useApp();
  const { name, size, size_vram: vram, expires_at: expires, context_length: context } = model;
  const now = useSignal(Date.now());
  useSignalEffect(() => {
    void models.loaded.value; // every look
    now.value = Date.now();
  });
  const unload = (): void => {
    api.json("/api/generate", { body: { model: name, keep_alive: 0 } }).then(
      () => void models.refreshLoaded(),
      (error: Error) => notices.say(error.message),
    );
  };
  const share = size > 0 ? Math.round((vram / size) * 100) : 0;
  return (
    <li class="card">
      <div class="card-line">
        <span class="dot still" />
        <strong>{name.replace(/:latest$/, "")}</strong>
        <span class="grow" />
        <button type="button" class="button small" onClick={unload}>
          Unload
        </button>
      </div>
      <p class="quiet">
        {bytesText(size)}
        {share === 0 ? " on the CPU" : ` · ${share}% on the GPU`} · context of {countText(context)} · leaves{" "}
        {untilText(Date.parse(expires), now.value)}
      </p>
    </li>
  );
}

function ModelCard({ model, onOver }: { model: StoredModel; onOver: (over: Over) => void }) {
  const { api, models, engine, notices, prefs, go, jobs } = useApp();
  const { name, size, modified_at: modified, details } = model;
  const report = (error: Error): void => notices.say(error.message);
  const refresh = (): void => void models.refresh();
  const copy = (): void => {
    const destination = prompt(`Another name for ${name}`, `${name.split(":")[0]}-copy`);
    if (destination) api.json("/api/copy", { body: { source: name, destination } }).then(refresh, report);
  };
  const remove = (): void => {
    if (!confirm(`Delete ${name} from the server?`)) return;
    const deleted = api.json("/api/delete", { method: "DELETE", body: { model: name } });
    deleted
      .then(() => models.refresh())
      .then(() => engine.dropGone(new Set(models.list.value?.map((each) => each.digest))))
      .catch(report);
  };
  const load = (): void => {
    api.json("/api/generate", { body: { model: name } }).then(() => void models.refreshLoaded(), report);
  };
  const chat = (): void => {
    prefs.model.value = name;
    go({ view: "chat" });
  };
  return (
    <li class="card">
      <div class="card-line">
        <strong>{name.replace(/:latest$/, "")}</strong>
        <span class="grow" />
        <button type="button" class="button small" onClick={chat}>
          Chat
        </button>
        <Menu
          label={`More about ${name}`}
          items={[
            { label: "Show", icon: "file", onChoose: () => onOver({ kind: "show", name }) },
            { label: "Load now", icon: "play", onChoose: load },
            { label: "Bring again", icon: "download", onChoose: () => void jobs.pull(name) },
            { label: "Create from it", icon: "plus", onChoose: () => onOver({ kind: "create", from: name }) },
            { label: "Copy", icon: "copy", onChoose: copy },
            { label: "Delete", icon: "trash", isDangerous: true, onChoose: remove },
          ]}
        >
          <Icon name="more" size={16} />
        </Menu>
      </div>
      <p class="quiet">
        {[
          details.family,
          details.parameter_size,
          details.quantization_level,
          bytesText(size),
          agoText(Date.parse(modified)),
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
    </li>
  );
}
