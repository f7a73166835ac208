/** The gateway: what came in, what became of it, and how it is set up. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useApp } from "../context.ts";
import { Icon } from "../base/icons.tsx";
import { ViewHead } from "../base/view-head.tsx";
import { DeliveryList } from "./deliveries.tsx";
import { FindingList, MappingList } from "./setup.tsx";
import { TokenForm } from "./token-form.tsx";

const LOOK_MS = 3000;
const PARTS = ["Deliveries", "Mappings", "Findings"] as const;

interface Status {
  readonly queued: number;
  readonly running: number;
  readonly replies: number;
  readonly messages: number;
  readonly paused?: true;
}

export function GatewayView() {
  const { api, admin, notices } = useApp();
  const part = useSignal<(typeof PARTS)[number]>("Deliveries");
  const status = useSignal<Status | undefined>(undefined);
  const access = admin.access.value;
  const look = async (): Promise<void> => {
    const { gateway } = await api.json<{ gateway?: Status }>("/health").catch(() => ({ gateway: undefined }));
    status.value = gateway;
  };
  useEffect(() => {
    void look();
    const timer = setInterval(() => void look(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (access === "unknown") void admin.ask("mappings").catch(() => {}); // `access` says it
  }, [access]);
  const setPaused = (isPaused: boolean): void => {
    const said = (error: Error): void => notices.say(error.message);
    admin.ask(isPaused ? "pause" : "resume", { method: "POST" }).then(look, said);
  };
  return (
    <div class="view">
      <ViewHead title="Gateway">
        {access === "open" && (
          <button type="button" class="button" onClick={() => setPaused(!status.value?.paused)}>
            <Icon name={status.value?.paused ? "play" : "pause"} size={16} />
            {status.value?.paused ? "Resume" : "Pause"}
          </button>
        )}
      </ViewHead>
      <div class="view-body">
        {status.value && <StatusLine status={status.value} />}
        {access === "closed" && <Closed />}
        {(access === "asks" || access === "refused") && <TokenForm wasRefused={access === "refused"} />}
        {access === "open" && (
          <>
            <div class="tabs" role="tablist" aria-label="Parts of the gateway">
              {PARTS.map((name) => (
                <button
                  type="button"
                  role="tab"
                  aria-selected={part.value === name}
                  onClick={() => (part.value = name)}
                >
                  {name}
                </button>
              ))}
            </div>
            {part.value === "Deliveries" && <DeliveryList />}
            {part.value === "Mappings" && <MappingList />}
            {part.value === "Findings" && <FindingList />}
          </>
        )}
      </div>
    </div>
  );
}

function StatusLine({ status: { queued, running, replies, messages, paused } }: { status: Status }) {
  return (
    <dl class="facts strip">
      {paused && (
        <div>
          <dt>Turns</dt>
          <dd class="problem">paused</dd>
        </div>
      )}
      {Object.entries({ waiting: queued, running, "replies due": replies, "messages due": messages }).map(
        ([name, count]) => (
          <div>
            <dt>{name}</dt>
            <dd>{count}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

function Closed() {
  const { admin } = useApp();
  return (
    <div class="empty">
      <Icon name="hook" size={34} />
      <h2>There is no gateway to look at</h2>
      <p class="quiet">
        {admin.reason.value}. Webhooks, channels and their agent are set up in hearth.json5, and gateway.token opens
        this view.
      </p>
    </div>
  );
}
