/** Downloads and creations, with their progress. */
import { useApp, useWords } from "../context.ts";
import { bytesText, durationText } from "../base/format.ts";
import { reasonOf } from "../base/reason.ts";
import type { Words } from "../words/index.ts";
import type { Job } from "./jobs.ts";
import { SmallButton } from "../base/controls.tsx";

export function JobList() {
  const { jobs } = useApp();
  const { jobs: words } = useWords();
  if (jobs.list.value.length === 0) return null;
  return (
    <section class="section" aria-label={words.title}>
      <h2>{words.title}</h2>
      <ul class="cards">
        {jobs.list.value.map((job) => (
          <JobCard key={job.name} job={job} />
        ))}
      </ul>
    </section>
  );
}

function JobCard({ job }: { job: Job }) {
  const { jobs, notices } = useApp();
  const words = useWords();
  const { jobs: texts } = words;
  const { name, kind, state, done, total, error } = job;
  const forget = (): void => {
    jobs.forget(name);
    if (state !== "done" && kind === "pull") {
      notices.offerUndo({ text: texts.forgot(name), undo: () => jobs.remember(job) });
    }
  };
  return (
    <li class="card">
      <div class="card-line">
        <strong>{name}</strong>
        <span class="grow" />
        {state === "running" && (
          <SmallButton onClick={() => jobs.pause(name)}>
            {kind === "pull" ? texts.pause : words.composer.stop}
          </SmallButton>
        )}
        {kind === "pull" && (state === "paused" || state === "failed") && (
          <SmallButton onClick={() => void jobs.pull(name)}>{texts.resume}</SmallButton>
        )}
        {state === "failed" && needsInsecure(error) && (
          <SmallButton onClick={() => void jobs.pull(name, { insecure: true })}>{texts.withoutTls}</SmallButton>
        )}
        {state !== "running" && (
          <SmallButton onClick={forget}>{state === "done" ? words.base.close : texts.forget}</SmallButton>
        )}
      </div>
      {state === "running" && (
        <progress aria-label={texts.progress(name)} {...(total > 0 ? { max: total, value: done } : {})} />
      )}
      <p class={state === "failed" ? "problem" : "quiet"} role="status">
        {jobText(words, job)}
      </p>
    </li>
  );
}

/** Progress, or the reason of a failure. */
export const jobText = (words: Words, job: Job): string =>
  job.error === undefined ? stateText(words.jobs, job) : withoutHint(reasonOf(words, job.error));

/** Registries without TLS, or with an unverified certificate: the server's error names the setting that allows them. */
const INSECURE = / \('insecure' allows it\)|^insecure protocol http$/;

const needsInsecure = (error: unknown): boolean => error instanceof Error && INSECURE.test(error.message);

const withoutHint = (reason: string): string => reason.replace(/ \('insecure' allows it\)/, "");

function stateText(words: Words["jobs"], job: Job): string {
  const { kind, state, status, phase } = job;
  if (state === "paused") return kind === "pull" ? words.paused : words.stopped;
  if (state === "done") return kind === "pull" ? words.downloaded : words.created;
  const said = phase ? words[phase] : status === "" ? (job.total > 0 ? words.downloading : words.waiting) : status;
  return [said, ...amountTexts(words, job)].join(" · ");
}

function amountTexts(words: Words["jobs"], { done, total, rate }: Job): string[] {
  if (total === 0) return [];
  const amount = words.amount(bytesText(done), bytesText(total));
  const left = durationText(((total - done) / rate) * 1000);
  return rate > 0 ? [amount, words.rate(bytesText(rate)), words.left(left)] : [amount];
}
