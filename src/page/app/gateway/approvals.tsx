/** Calls of tools in turns of webhooks that wait for the operator's decision. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { agoText, argumentsText, dateTimeText } from "../base/format.ts";
import { reasonOf } from "../base/reason.ts";
import { Button, SmallButton, useLooks } from "../base/controls.tsx";

const LOOK_MS = 3000;

interface Approval {
  readonly code: string;
  /** `SERVER/TOOL`. */
  readonly tool: string;
  readonly arguments: unknown;
  /** The digest of tool and arguments, which a decision names. */
  readonly digest: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export function ApprovalList() {
  const { admin, notices } = useApp();
  const words = useWords();
  const { approvals: texts } = words;
  const found = useSignal<readonly Approval[] | undefined>(undefined);
  const problem = useSignal("");
  const look = (): Promise<void> =>
    admin.ask<{ approvals: readonly Approval[] }>("approvals").then(
      ({ approvals }) => void ([found.value, problem.value] = [approvals, ""]),
      (error: unknown) => void (problem.value = reasonOf(words, error)),
    );
  useLooks(look, LOOK_MS);
  const decide = ({ code, tool, digest }: Approval, verdict: "yes" | "no"): void => {
    const path = `approvals/${encodeURIComponent(code)}`;
    admin
      .ask(path, { method: "POST", body: { verdict, digest } })
      .then(
        () => notices.say(verdict === "yes" ? texts.allowed(tool) : texts.refused(tool)),
        (error: unknown) => notices.say(reasonOf(words, error)),
      )
      .then(look);
  };
  return (
    <section class="section" aria-label={words.gateway.approvals}>
      {problem.value !== "" && <p class="problem">{problem.value}</p>}
      {found.value?.length === 0 && <p class="quiet">{texts.none}</p>}
      <ul class="rows">
        {found.value?.map((approval) => (
          <ApprovalRow key={approval.code} approval={approval} onDecide={(verdict) => decide(approval, verdict)} />
        ))}
      </ul>
    </section>
  );
}

function ApprovalRow({ approval, onDecide }: { approval: Approval; onDecide: (verdict: "yes" | "no") => void }) {
  const { approvals: words } = useWords();
  const { code, tool, arguments: args, createdAt, expiresAt } = approval;
  return (
    <li class="approval">
      <p class="row-main">
        <strong>{tool}</strong>
        <span class="quiet">{[code, agoText(createdAt), words.until(dateTimeText(expiresAt))].join(" · ")}</span>
      </p>
      <pre tabIndex={0}>{argumentsText(args)}</pre>
      <div class="row">
        <Button look="small primary" onClick={() => onDecide("yes")}>
          {words.allow}
        </Button>
        <SmallButton onClick={() => onDecide("no")}>{words.refuse}</SmallButton>
      </div>
    </li>
  );
}
