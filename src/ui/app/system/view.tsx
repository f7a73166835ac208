/** What the server runs on, how it is set, and what it was asked last. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useApp } from "../context.ts";
import { bytesText, countText, durationText } from "../base/format.ts";
import { ViewHead } from "../base/view-head.tsx";

const LOOK_MS = 3000;

interface System {
  readonly version: string;
  readonly backend?: string;
  readonly device?: string;
  readonly cores?: number;
  readonly memory?: { readonly total: number; readonly available: number };
  readonly settings?: Readonly<Record<string, string | number | boolean>>;
  readonly activity: Readonly<Record<string, number>>;
}

interface Asked {
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly ms?: number;
  readonly key?: string;
  readonly model?: string;
  readonly promptTokens?: number;
  readonly tokens?: number;
}

interface Health {
  readonly problems: readonly string[];
  readonly disk: { readonly free: number | null };
}

export function SystemView() {
  const { api } = useApp();
  const system = useSignal<System | undefined>(undefined);
  const health = useSignal<Health | undefined>(undefined);
  const requests = useSignal<readonly Asked[]>([]);
  const problem = useSignal("");
  const look = async (): Promise<void> => {
    try {
      [system.value, { requests: requests.value }] = await Promise.all([
        api.json<System>("/api/system"),
        api.json<{ requests: Asked[] }>("/api/requests"),
      ]);
      problem.value = "";
      health.value = await api.json<Health>("/health");
    } catch (error) {
      problem.value = error instanceof Error ? error.message : String(error);
    }
  };
  useEffect(() => {
    void look();
    const timer = setInterval(() => void look(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="view">
      <ViewHead title="System">
        <a class="button" href="docs" target="_blank" rel="noopener">
          API
        </a>
        <a class="button" href="metrics" target="_blank" rel="noopener">
          Metrics
        </a>
      </ViewHead>
      <div class="view-body">
        {problem.value !== "" && <p class="problem">{problem.value}</p>}
        {health.value?.problems.map((each) => (
          <p class="problem">{each}</p>
        ))}
        {system.value && <MachineFacts system={system.value} free={health.value?.disk.free ?? null} />}
        {system.value?.settings && <Settings settings={system.value.settings} />}
        <KeySection />
        <Requests requests={requests.value} />
      </div>
    </div>
  );
}

function MachineFacts({ system, free }: { system: System; free: number | null }) {
  const { version, backend, device, cores, memory, activity } = system;
  const rows = {
    Version: version,
    Backend: backend,
    Device: device,
    Cores: cores,
    Memory: memory && `${bytesText(memory.available)} free of ${bytesText(memory.total)}`,
    Disk: free === null ? undefined : `${bytesText(free)} free`,
    "Answers now": activity["running"],
    Waiting: activity["waiting"],
    "Models loaded so far": activity["load"],
    Crashes: activity["crash"],
  };
  return (
    <section class="section" aria-label="This machine">
      <h2>This machine</h2>
      <dl class="facts panel">
        {Object.entries(rows).map(([name, value]) =>
          value === undefined ? null : (
            <div>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
      </dl>
    </section>
  );
}

function Settings({ settings }: { settings: NonNullable<System["settings"]> }) {
  return (
    <section class="section" aria-label="Settings of the server">
      <h2>Settings of the server</h2>
      <dl class="facts panel">
        {Object.entries(settings).map(([name, value]) => (
          <div>
            <dt>{name.replaceAll("_", " ")}</dt>
            <dd>{String(value)}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet">They come from hearth.json5, the environment and flags, and are read when the server starts.</p>
    </section>
  );
}

function KeySection() {
  const { api } = useApp();
  const has = useSignal(api.hasKey());
  if (!has.value) return null;
  const forget = (): void => {
    api.forgetKey();
    has.value = false;
  };
  return (
    <section class="section" aria-label="API key">
      <div class="section-head">
        <h2>This tab has an API key</h2>
        <button type="button" class="button small" onClick={forget}>
          Forget it
        </button>
      </div>
    </section>
  );
}

function Requests({ requests }: { requests: readonly Asked[] }) {
  return (
    <section class="section" aria-label="Last requests">
      <h2>Last requests</h2>
      {requests.length === 0 && <p class="quiet">None yet, beside those of this page.</p>}
      {requests.length > 0 && (
        <div class="table panel" tabIndex={0} role="region" aria-label="Last requests">
          <table>
            <thead>
              <tr>
                {["Time", "Request", "Status", "Took", "Model", "Tokens", "Key"].map((name) => (
                  <th scope="col">{name}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {requests.map((each, i) => (
                <RequestRow key={`${each.at} ${i}`} asked={each} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function RequestRow({ asked: { at, method, path, status, ms, model, promptTokens, tokens, key } }: { asked: Asked }) {
  return (
    <tr>
      <td>{new Date(at).toLocaleTimeString()}</td>
      <td class="path" title={path}>
        {method} {path}
      </td>
      <td>
        <span class={status < 400 ? "tag good" : "tag bad"}>{status}</span>
      </td>
      <td>{ms === undefined ? "" : durationText(ms)}</td>
      <td class="model" title={model}>
        {model ?? ""}
      </td>
      <td>{tokens === undefined ? "" : `${countText(promptTokens ?? 0)} → ${countText(tokens)}`}</td>
      <td>{key ?? ""}</td>
    </tr>
  );
}
