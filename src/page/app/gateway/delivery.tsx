/**
 * One delivery: its runs and their answers, its body; replay and cancel. Outside text is shown as text, never as
 * markup.
 */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "../base/dialog.tsx";
import { Disclosure } from "../base/disclosure.tsx";
import { bytesText, dateTimeText } from "../base/format.ts";
import { reasonOf } from "../base/reason.ts";
import { fateOf, type Delivery, type Run } from "./admin.ts";
import { Button, useLooks } from "../base/controls.tsx";

interface RunDetails extends Run {
  readonly answer?: string | null;
  readonly error?: string | null;
  readonly reason?: string | null;
  readonly replyReason?: string | null;
  readonly prompt?: string;
  readonly sessionKey: string;
  readonly action: { readonly kind: string };
}

interface Details extends Omit<Delivery, "runs"> {
  readonly runs: readonly RunDetails[];
  readonly body: { readonly encoding: string; readonly data: string } | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly requestId: string;
}

const LOOK_MS = 2000;
const isOpen = ({ state, reply }: Run): boolean => state === "queued" || state === "running" || reply === "pending";

export function DeliveryDialog({ id, onClose, onChange }: { id: string; onClose: () => void; onChange: () => void }) {
  const { admin, go, route } = useApp();
  const words = useWords();
  const { deliveries: texts } = words;
  const found = useSignal<Details | undefined>(undefined);
  const problem = useSignal("");
  const look = (): Promise<void> =>
    admin.ask<Details>(`deliveries/${encodeURIComponent(id)}`).then(
      (details) => void (found.value = details),
      (error: unknown) => void (problem.value = reasonOf(words, error)),
    );
  useLooks(look, LOOK_MS, [id], () => found.value?.runs.some(isOpen) ?? false);
  const act = async (what: "replay" | "cancel", target: string): Promise<void> => {
    try {
      const said = await admin.ask<{ deliveryId?: string }>(`deliveries/${encodeURIComponent(target)}/${what}`, {
        method: "POST",
      });
      if (said.deliveryId !== undefined && route.peek().id === id) go({ view: "gateway", id: said.deliveryId });
      problem.value = "";
      await look();
      onChange();
    } catch (error) {
      problem.value = reasonOf(words, error);
    }
  };
  const details = found.value;
  return (
    <Dialog title={details ? `/${details.path}` : texts.title} kind="sheet" onClose={onClose}>
      {problem.value !== "" && <p class="problem">{problem.value}</p>}
      {details && (
        <div class="stack">
          <div class="row">
            <Button onClick={() => void act("replay", id)}>{texts.replay}</Button>
            {details.runs.some(isOpen) && (
              <Button look="dangerous" onClick={() => void act("cancel", id)}>
                {words.base.cancel}
              </Button>
            )}
          </div>
          <Facts details={details} />
          {details.runs.map((run) => (
            <RunCard key={run.id} run={run} />
          ))}
          <Disclosure icon="file" title={texts.headers}>
            <pre tabIndex={0}>
              {Object.entries(details.headers)
                .map(([name, value]) => `${name}: ${value}`)
                .join("\n")}
            </pre>
          </Disclosure>
          {details.body ? (
            <Disclosure icon="file" title={details.body.encoding === "base64" ? texts.bodyBase64 : texts.body}>
              <pre tabIndex={0}>{indented(details.body.data)}</pre>
            </Disclosure>
          ) : (
            <p class="quiet">{texts.noBody}</p>
          )}
        </div>
      )}
    </Dialog>
  );
}

function Facts({ details }: { details: Details }) {
  const { receivedAt, title, mappingId, authKind, authId, bodyBytes, requestId, id } = details;
  const { deliveries: words } = useWords();
  const rows = [
    [words.received, dateTimeText(receivedAt)],
    ...(title === null ? [] : [[words.about, title] as const]),
    [words.mapping, mappingId ?? words.noMapping],
    [words.sender, [authKind, authId].filter(Boolean).join(" · ")],
    [words.body, bytesText(bodyBytes)],
    [words.title, id],
    [words.request, requestId],
  ] as const;
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function RunCard({ run }: { run: RunDetails }) {
  const { id, reply, replyReason, answer, error, reason, sessionKey, action, prompt } = run;
  const { deliveries: words } = useWords();
  return (
    <div class="card">
      <div class="card-line">
        <strong>{action.kind === "wake" ? words.wake : words.turn}</strong>
        <span class="grow" />
        <span class={fateOf(run).look}>{words.fate(fateOf(run))}</span>
      </div>
      <p class="quiet">
        {sessionKey} · {words.reply(reply)} · {id}
      </p>
      {(error || reason) && <p class="problem">{error || reason}</p>}
      {replyReason && <p class="problem">{words.reply(replyReason)}</p>}
      {answer && <p class="plain">{answer}</p>}
      {prompt && (
        <Disclosure icon="file" title={words.prompt}>
          <pre tabIndex={0}>{prompt}</pre>
        </Disclosure>
      )}
    </div>
  );
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
