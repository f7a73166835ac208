/** The models of the server, running jobs, and models in this page. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Icon } from "../base/icons.tsx";
import { reasonOf } from "../base/reason.ts";
import { ViewHead } from "../base/view-head.tsx";
import { CatalogueSection } from "./catalogue-view.tsx";
import { CreateDialog } from "./create.tsx";
import { InPage } from "./in-page.tsx";
import { JobList } from "./job-list.tsx";
import { LeftoverCard, ModelCard } from "./model-card.tsx";
import { AddFilesButton } from "./model-files-dialog.tsx";
import { ShowDialog } from "./show.tsx";
import { Button, Submit, typed, useLooks } from "../base/controls.tsx";

/** Interval of refreshing while models are shown. */
const LOOK_MS = 2000;

type Over = { readonly kind: "show"; readonly name: string } | { readonly kind: "create"; readonly from: string };

export function ModelsView() {
  const { models } = useApp();
  const { base } = useWords();
  const over = useSignal<Over | undefined>(undefined);
  const close = (): void => void (over.value = undefined);
  useLooks(() => void models.refresh(), LOOK_MS); // another tab may have deleted one
  const first = models.list.value?.[0]?.name ?? "hearth";
  return (
    <div class="view">
      <ViewHead title={base.models}>
        <AddFilesButton />
        <Button onClick={() => (over.value = { kind: "create", from: first })}>
          <Icon name="plus" size={16} />
          {base.create}
        </Button>
      </ViewHead>
      <div class="view-body">
        <PullField />
        <JobList />
        <ModelList onOver={(next) => (over.value = next)} />
        <CatalogueSection />
        <InPage />
      </div>
      {over.value?.kind === "show" && <ShowDialog name={over.value.name} onClose={close} />}
      {over.value?.kind === "create" && <CreateDialog from={over.value.from} onClose={close} />}
    </div>
  );
}

function ModelList({ onOver }: { onOver: (over: Over) => void }) {
  const { models, api } = useApp();
  const words = useWords();
  const list = models.list.value;
  const problem = models.problem.value;
  const leftover = models.loaded.value.filter(({ name }) => list && !models.find(name));
  return (
    <section class="section" aria-label={words.models.list}>
      {problem !== undefined && api.isReachable.value && <p class="problem">{reasonOf(words, problem)}</p>}
      {list?.length === 0 && <p class="quiet">{words.models.none}</p>}
      <ul class="cards">
        {list?.map((model) => (
          <ModelCard
            key={model.name}
            model={model}
            onShow={() => onOver({ kind: "show", name: model.name })}
            onCreate={() => onOver({ kind: "create", from: model.name })}
          />
        ))}
        {leftover.map((model) => (
          <LeftoverCard key={model.name} model={model} />
        ))}
      </ul>
    </section>
  );
}

function PullField() {
  const { jobs } = useApp();
  const { models: words } = useWords();
  const name = useSignal("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (name.value.trim() === "") return;
    void jobs.pull(name.value.trim());
    name.value = "";
  };
  return (
    <form class="pull" onSubmit={submit}>
      <input class="input" aria-label={words.pullLabel} placeholder={words.pullHint} {...typed(name)} />
      <Submit disabled={name.value.trim() === ""}>
        <Icon name="download" size={16} />
        {words.pull}
      </Submit>
    </form>
  );
}
