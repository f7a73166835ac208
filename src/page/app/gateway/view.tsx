/** The gateway: deliveries, their outcomes, and the setup. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { Icon } from "../base/icons.tsx";
import { ViewHead } from "../base/view-head.tsx";
import { ApprovalList } from "./approvals.tsx";
import { DeliveryList } from "./deliveries.tsx";
import { FindingList, MappingList } from "./setup.tsx";
import { reasonOf } from "../base/reason.ts";
import { Off } from "./off.tsx";
import { TokenForm } from "./token-form.tsx";
import { Button, useLooks } from "../base/controls.tsx";

const LOOK_MS = 3000;
const PARTS = ["deliveries", "approvals", "mappings", "findings"] as const;

interface Status {
  readonly queued: number;
  readonly running: number;
  readonly replies: number;
  readonly messages: number;
  readonly paused?: true;
  /** In English, as the server words them. */
  readonly findings?: readonly string[];
}

interface Health {
  readonly gateway?: Status;
  readonly problems: readonly string[];
}

export function GatewayView() {
  const { api, admin, notices } = useApp();
  const words = useWords();
  const part = useSignal<(typeof PARTS)[number]>("deliveries");
  const status = useSignal<Status | undefined>(undefined);
  const { gateway: texts } = words;
  const access = admin.access.value;
  const look = async (): Promise<void> => {
    const health = await api.json<Health>("/health", { alsoOk: 503 }).catch(() => undefined);
    status.value = health?.gateway;
    // a failing gateway has no status
    if (health && admin.access.peek() === "unknown") await admin.look(!!health.gateway || health.problems.length > 0);
  };
  useLooks(look, LOOK_MS);
  useEffect(() => {
    if (access === "unknown") void look();
  }, [access]);
  const setPaused = (isPaused: boolean): void => {
    const said = (error: unknown): void => notices.say(reasonOf(words, error));
    admin.ask(isPaused ? "pause" : "resume", { method: "POST" }).then(look, said);
  };
  return (
    <div class="view">
      <ViewHead title={words.base.gateway}>
        {access === "open" && (
          <Button onClick={() => setPaused(!status.value?.paused)}>
            <Icon name={status.value?.paused ? "play" : "pause"} size={16} />
            {status.value?.paused ? words.jobs.resume : words.jobs.pause}
          </Button>
        )}
      </ViewHead>
      <div class="view-body">
        {access === "open" && status.value && <StatusLine status={status.value} />}
        {access === "open" &&
          status.value?.findings?.map((each) => (
            <p key={each} class="problem">
              {each}
            </p>
          ))}
        {(access === "off" || access === "locked") && <Off isLocked={access === "locked"} />}
        {(access === "asks" || access === "refused") && <TokenForm wasRefused={access === "refused"} />}
        {access === "open" && (
          <>
            <div class="tabs" role="tablist" aria-label={texts.parts}>
              {PARTS.map((name) => (
                <button
                  type="button"
                  role="tab"
                  aria-selected={part.value === name}
                  onClick={() => (part.value = name)}
                >
                  {texts[name]}
                </button>
              ))}
            </div>
            {part.value === "deliveries" && <DeliveryList />}
            {part.value === "approvals" && <ApprovalList />}
            {part.value === "mappings" && <MappingList />}
            {part.value === "findings" && <FindingList />}
          </>
        )}
      </div>
    </div>
  );
}

function StatusLine({ status: { queued, running, replies, messages, paused } }: { status: Status }) {
  const { gateway: words, base } = useWords();
  const counts = [
    [words.waiting, queued],
    [words.running, running],
    [words.replies, replies],
    [words.messages, messages],
  ] as const;
  return (
    <dl class="facts strip">
      {paused && (
        <div>
          <dt>{base.gateway}</dt>
          <dd class="problem">{words.paused}</dd>
        </div>
      )}
      {counts.map(([name, count]) => (
        <div>
          <dt>{name}</dt>
          <dd>{count}</dd>
        </div>
      ))}
    </dl>
  );
}
