/** Downloads and creations, with what is left of each. */
import { useApp } from "../context.ts";
import { bytesText, durationText } from "../base/format.ts";
import type { Job } from "./jobs.ts";

export function JobList() {
  const { jobs } = useApp();
  if (jobs.list.value.length === 0) return null;
  return (
    <section class="section" aria-label="Downloads">
      <h2>Downloads</h2>
      <ul class="cards">
        {jobs.list.value.map((job) => (
          <JobCard key={job.name} job={job} />
        ))}
      </ul>
    </section>
  );
}

function JobCard({ job }: { job: Job }) {
  const { jobs } = useApp();
  const { name, kind, state, status, done, total, error } = job;
  return (
    <li class="card">
      <div class="card-line">
        <strong>{name}</strong>
        <span class="grow" />
        {state === "running" && (
          <button type="button" class="button small" onClick={() => jobs.pause(name)}>
            {kind === "pull" ? "Pause" : "Stop"}
          </button>
        )}
        {kind === "pull" && (state === "paused" || state === "failed") && (
          <button type="button" class="button small" onClick={() => void jobs.pull(name)}>
            Resume
          </button>
        )}
        {state !== "running" && (
          <button type="button" class="button small" onClick={() => jobs.forget(name)}>
            {state === "done" ? "Close" : "Forget"}
          </button>
        )}
      </div>
      {state === "running" && (
        <progress aria-label={`Progress of ${name}`} {...(total > 0 ? { max: total, value: done } : {})} />
      )}
      <p class={state === "failed" ? "problem" : "quiet"} role="status">
        {error ??
          (state === "paused"
            ? "Paused. What is there is kept for a week."
            : [status, amountText(job)].filter(Boolean).join(" · "))}
      </p>
    </li>
  );
}

function amountText({ state, done, total, rate }: Job): string {
  if (total === 0 || state !== "running") return "";
  const left = rate > 0 ? ` · ${durationText(((total - done) / rate) * 1000)} left` : "";
  return `${bytesText(done)} of ${bytesText(total)}${rate > 0 ? ` · ${bytesText(rate)}/s` : ""}${left}`;
}
