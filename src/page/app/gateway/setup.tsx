/** The gateway's setup: its mappings, with a field to try them, and audit findings. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { reasonOf } from "../base/reason.ts";
import { Dialog } from "../base/dialog.tsx";
import type { Words } from "../words/index.ts";
import type { Finding, Mapping } from "./admin.ts";
import { Field, SmallButton, Submit, typed } from "../base/controls.tsx";

/** Fetches once; returns an error text on failure. */
function useFound<T>(path: string): { found: T | undefined; problem: string } {
  const { admin } = useApp();
  const words = useWords();
  const found = useSignal<T | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    admin.ask<T>(path).then(
      (value) => (found.value = value),
      (error: unknown) => (problem.value = reasonOf(words, error)),
    );
  }, [path]);
  return { found: found.value, problem: problem.value };
}

export function MappingList() {
  const { found, problem } = useFound<{ mappings: readonly Mapping[] }>("mappings");
  const { gateway, setup: words } = useWords();
  const tried = useSignal<string | undefined>(undefined);
  return (
    <section class="section" aria-label={gateway.mappings}>
      {problem !== "" && <p class="problem">{problem}</p>}
      {found?.mappings.length === 0 && <p class="quiet">{words.noMappings}</p>}
      <ul class="cards">
        {found?.mappings.map(({ id, preset, path, action, channel, problem: mappingProblem }) => (
          <li class="card" key={id}>
            <div class="card-line">
              <strong>{id}</strong>
              <span class="grow" />
              <SmallButton onClick={() => (tried.value = id)}>{words.tryIt}</SmallButton>
            </div>
            <p class="quiet">
              {[
                path === null ? words.everyPath : `/${path}`,
                action,
                channel && words.repliesTo(channel),
                preset && words.preset(preset),
              ]
                .filter(Boolean)
                .join(" · ")}
            </p>
            {mappingProblem && <p class="problem">{mappingProblem}</p>}
          </li>
        ))}
      </ul>
      {tried.value !== undefined && <TryDialog id={tried.value} onClose={() => (tried.value = undefined)} />}
    </section>
  );
}

/** Throws for a line that is not a header. */
function readHeaders(text: string, { notHeader }: Words["setup"]): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = /^\s*([^\s:]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
      if (name === undefined) throw new Error(notHeader(line.trim()));
      return [name, value ?? ""];
    }),
  );
}

function TryDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { admin } = useApp();
  const words = useWords();
  const { setup: texts } = words;
  const payload = useSignal("{}");
  const headers = useSignal("");
  const outcome = useSignal("");
  const problem = useSignal("");
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    problem.value = "";
    try {
      const body = { payload: JSON.parse(payload.value) as unknown, headers: readHeaders(headers.value, texts) };
      const said = await admin.ask<object>(`mappings/${encodeURIComponent(id)}/test`, { body });
      outcome.value = JSON.stringify(said, null, 2);
    } catch (error) {
      problem.value = error instanceof SyntaxError ? texts.notJson : reasonOf(words, error);
    }
  };
  return (
    <Dialog title={texts.tryTitle(id)} kind="sheet" onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <p class="quiet">{texts.tryAbout}</p>
        <Field label={texts.payload}>
          <textarea rows={8} class="mono" spellcheck={false} {...typed(payload)} />
        </Field>
        <Field label={texts.headers}>
          <textarea rows={2} class="mono" spellcheck={false} {...typed(headers)} />
        </Field>
        <div class="row end">
          <Submit>{texts.try}</Submit>
        </div>
        <div role="status">
          {problem.value !== "" && <p class="problem">{problem.value}</p>}
          {outcome.value !== "" && (
            <pre class="outcome" tabIndex={0}>
              {outcome.value}
            </pre>
          )}
        </div>
      </form>
    </Dialog>
  );
}

const SEVERITY: Readonly<Record<Finding["severity"], string>> = {
  error: "tag bad",
  warn: "tag",
  info: "tag plain-tag",
};

export function FindingList() {
  const { gateway, setup: words } = useWords();
  const { found, problem } = useFound<{ findings: readonly Finding[] }>("findings");
  return (
    <section class="section" aria-label={gateway.findings}>
      {problem !== "" && <p class="problem">{problem}</p>}
      {found?.findings.length === 0 && <p class="quiet">{words.noFindings}</p>}
      <ul class="rows">
        {found?.findings.map(({ id, severity, key, where, message }) => (
          <li class="row-plain" key={`${id} ${key}`}>
            <span class={SEVERITY[severity]}>{severity}</span>
            <span class="row-main">
              <span>{message}</span>
              <span class="quiet">{[id, key, where].filter(Boolean).join(" · ")}</span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
