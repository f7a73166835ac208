/** The catalogue: models to download with one click, by purpose; and three of them for a first chat. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { bytesText } from "../base/format.ts";
import { Icon } from "../base/icons.tsx";
import { reasonOf } from "../base/reason.ts";
import { Signs } from "../chat/model-menu.tsx";
import type { Words } from "../words/index.ts";
import { PURPOSES, type CatalogueList, type CatalogueModel, type Purpose } from "./catalogue.ts";
import { jobText } from "./job-list.tsx";
import { isDemo } from "./models.ts";
import { Button, SmallButton } from "../base/controls.tsx";

/** Open if the server has only the demo model. */
export function CatalogueSection() {
  const { catalogue, models } = useApp();
  const words = useWords();
  const { catalogue: texts } = words;
  const purpose = useSignal<Purpose | undefined>(undefined);
  const isOpen = useSignal(false);
  const isNew = models.list.value?.every(isDemo) ?? false; // the list may arrive later
  useEffect(() => void (isNew && (isOpen.value = true)), [isNew]);
  useEffect(() => void (isOpen.value && catalogue.refresh()), [isOpen.value]);
  const list = catalogue.list.value;
  const problem = catalogue.problem.value;
  const shown = list?.models.filter((each) => purpose.value === undefined || each.purpose === purpose.value) ?? [];
  return (
    <details
      class="section in-page"
      aria-label={texts.title}
      open={isOpen.value}
      onToggle={(event) => (isOpen.value = event.currentTarget.open)}
    >
      <summary>
        <h2>{texts.title}</h2>
        <Icon name="down" size={14} />
      </summary>
      {problem !== undefined && <p class="problem">{reasonOf(words, problem)}</p>}
      {list && (
        <>
          <div class="row filters" role="group" aria-label={texts.purpose}>
            {[undefined, ...PURPOSES].map((each) => (
              <Button look="small pill" aria-pressed={purpose.value === each} onClick={() => (purpose.value = each)}>
                {each === undefined ? texts.all : texts.purposes[each]}
              </Button>
            ))}
          </div>
          <ul class="cards">
            {shown.map((model) => (
              <CatalogueCard key={model.name} model={model} list={list} />
            ))}
          </ul>
          <p class="quiet">{texts.updated(monthText(list.updated))}</p>
        </>
      )}
    </details>
  );
}

/** Three models for a new user. Shows nothing if the catalogue cannot be read. */
export function SuggestedModels() {
  const { catalogue } = useApp();
  const { catalogue: texts } = useWords();
  useEffect(() => void catalogue.refresh(), []);
  const list = catalogue.list.value;
  const suggested = list?.suggested.flatMap((name) => list.models.find((each) => each.name === name) ?? []) ?? [];
  if (!list || suggested.length === 0) return null;
  return (
    <ul class="cards suggested" aria-label={texts.suggested}>
      {suggested.map((model) => (
        <CatalogueCard key={model.name} model={model} list={list} />
      ))}
    </ul>
  );
}

function CatalogueCard({ model, list }: { model: CatalogueModel; list: CatalogueList }) {
  const { jobs, models, prefs, go } = useApp();
  const words = useWords();
  const { catalogue: texts } = words;
  const { name, title, description, parameters, size, license, fits } = model;
  const job = jobs.list.value.find((each) => each.name === name);
  const isRunning = job?.state === "running";
  const isInstalled = models.find(name) !== undefined;
  const chat = (): void => {
    prefs.model.value = name;
    go({ view: "chat" });
  };
  return (
    <li class="card catalogue-card">
      <div class="card-line">
        <strong title={name}>{title}</strong>
        <Signs model={model} />
        <span class="grow" />
        {isInstalled ? (
          <>
            <span class="installed">
              <Icon name="check" size={15} />
              {texts.installed}
            </span>
            {model.capabilities.includes("completion") && (
              <SmallButton aria-label={texts.chatWith(title)} onClick={chat}>
                {words.models.chat}
              </SmallButton>
            )}
          </>
        ) : (
          <PullButton model={model} isRunning={isRunning} />
        )}
      </div>
      <p>{texts.describe(name, description)}</p>
      <p class="quiet">{[name, parameters, bytesText(size), license].join(" · ")}</p>
      {!isInstalled && !job && (
        <p class={`fits ${fits}`}>
          <Icon name={fits === "yes" ? "check" : "warn"} size={15} />
          {fitText(texts, model, list)}
        </p>
      )}
      {isRunning && (
        <progress
          aria-label={words.jobs.progress(name)}
          {...(job.total > 0 ? { max: job.total, value: job.done } : {})}
        />
      )}
      {job && !isInstalled && <p class={job.state === "failed" ? "problem" : "quiet"}>{jobText(words, job)}</p>}
    </li>
  );
}

function PullButton({ model: { name, title, fits }, isRunning }: { model: CatalogueModel; isRunning: boolean }) {
  const { jobs } = useApp();
  const words = useWords();
  const { catalogue: texts } = words;
  if (isRunning) {
    return (
      <SmallButton aria-label={texts.pausing(title)} onClick={() => jobs.pause(name)}>
        {words.jobs.pause}
      </SmallButton>
    );
  }
  return (
    <SmallButton aria-label={texts.download(title)} disabled={fits === "no"} onClick={() => void jobs.pull(name)}>
      <Icon name="download" size={15} />
      {words.models.pull}
    </SmallButton>
  );
}

/** The server gives the reason why a model does not fit. */
function fitText(texts: Words["catalogue"], { fits, reason = "" }: CatalogueModel, { memory }: CatalogueList): string {
  if (fits === "yes") return texts.fits(bytesText(memory.available));
  return fits === "tight" ? texts.tight(reason) : texts.tooLarge(reason);
}

const monthText = (yearMonth: string): string =>
  new Date(`${yearMonth}-01T00:00:00`).toLocaleDateString(document.documentElement.lang || "en", {
    month: "long",
    year: "numeric",
  });
