/** The server's hardware and settings, and its recent requests. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { bytesText, countText, durationText, timeText } from "../base/format.ts";
import type { Words } from "../words/index.ts";
import { reasonOf } from "../base/reason.ts";
import { ViewHead } from "../base/view-head.tsx";
import { PageSettings } from "./page-settings.tsx";
import { SmallButton, useLooks } from "../base/controls.tsx";

const LOOK_MS = 3000;

interface System {
  readonly version: string;
  readonly backend?: string;
  readonly device?: string;
  readonly memory?: { readonly total: number; readonly available: number };
  readonly settings?: Readonly<Record<string, string | number | boolean>>;
  readonly activity: Readonly<Record<string, number>>;
}

interface RecentRequest {
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
  const words = useWords();
  const system = useSignal<System | undefined>(undefined);
  const health = useSignal<Health | undefined>(undefined);
  const requests = useSignal<readonly RecentRequest[]>([]);
  const problem = useSignal("");
  const look = async (): Promise<void> => {
    try {
      [system.value, { requests: requests.value }] = await Promise.all([
        api.json<System>("/api/system"),
        api.json<{ requests: RecentRequest[] }>("/api/requests"),
      ]);
      problem.value = "";
      health.value = await api.json<Health>("/health", { alsoOk: 503 });
    } catch (error) {
      problem.value = reasonOf(words, error);
    }
  };
  useLooks(look, LOOK_MS);
  return (
    <div class="view">
      <ViewHead title={words.base.system}>
        <a class="button" href="docs" target="_blank" rel="noopener">
          {words.help.api}
        </a>
        <a class="button" href="metrics" target="_blank" rel="noopener">
          {words.system.metrics}
        </a>
      </ViewHead>
      <div class="view-body">
        {problem.value !== "" && <p class="problem">{problem.value}</p>}
        {health.value?.problems.map((each) => (
          <p class="problem">{each}</p>
        ))}
        {system.value && <MachineFacts system={system.value} free={health.value?.disk.free ?? null} />}
        {system.value?.settings && <Settings settings={system.value.settings} />}
        <PageSettings />
        <KeySection />
        <Requests requests={requests.value} />
      </div>
    </div>
  );
}

function MachineFacts({ system, free }: { system: System; free: number | null }) {
  const { system: words } = useWords();
  const { version, backend, device, memory, activity } = system;
  const values: Readonly<Record<keyof Words["system"]["facts"], string | number | undefined>> = {
    version,
    backend,
    device,
    memory: memory && words.memory(bytesText(memory.available), bytesText(memory.total)),
    disk: free === null ? undefined : words.free(bytesText(free)),
    running: activity["running"],
    waiting: activity["waiting"],
    load: activity["load"],
    crash: activity["crash"],
  };
  return (
    <section class="section" aria-label={words.machine}>
      <h2>{words.machine}</h2>
      <dl class="facts panel">
        {FACTS.map((name) =>
          values[name] === undefined ? null : (
            <div>
              <dt>{words.facts[name]}</dt>
              <dd>{values[name]}</dd>
            </div>
          ),
        )}
      </dl>
    </section>
  );
}

const FACTS = ["version", "backend", "device", "memory", "disk", "running", "waiting", "load", "crash"] as const;

type Setting = keyof Words["system"]["names"];

function Settings({ settings }: { settings: NonNullable<System["settings"]> }) {
  const { system: words } = useWords();
  return (
    <section class="section" aria-label={words.settings}>
      <h2>{words.settings}</h2>
      <dl class="facts panel">
        {Object.entries(settings).map(([name, value]) => (
          <div title={`HEARTH_${name.toUpperCase()}`}>
            <dt>{words.names[name as Setting] ?? `HEARTH_${name.toUpperCase()}`}</dt>
            <dd>{settingText(words, name, value)}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet">{words.settingsFrom}</p>
    </section>
  );
}

function settingText(words: Words["system"], name: string, value: string | number | boolean): string {
  if (typeof value === "boolean") return value ? words.on : words.off;
  if (value === "auto") return words.auto;
  if (value === "for ever") return words.forever;
  if (typeof value === "number") return value === 0 && name === "api_keys" ? words.none : countText(value);
  const seconds = name === "keep_alive" ? /^(\d+) s$/.exec(value)?.[1] : undefined;
  return seconds === undefined ? value : durationText(Number(seconds) * 1000);
}

function KeySection() {
  const { api, notices } = useApp();
  const { system: words } = useWords();
  const has = useSignal(api.hasKey());
  if (!has.value) return null;
  const forget = (): void => {
    const undo = api.forgetKey();
    has.value = false;
    notices.offerUndo({
      text: words.forgotKey,
      undo: () => {
        undo();
        has.value = true;
      },
    });
  };
  return (
    <section class="section" aria-label={words.key}>
      <div class="section-head">
        <h2>{words.key}</h2>
        <SmallButton onClick={forget}>{words.forgetKey}</SmallButton>
      </div>
    </section>
  );
}

function Requests({ requests }: { requests: readonly RecentRequest[] }) {
  const { system: words } = useWords();
  return (
    <section class="section" aria-label={words.requests}>
      <h2>{words.requests}</h2>
      {requests.length === 0 && <p class="quiet">{words.noRequests}</p>}
      {requests.length > 0 && (
        <div class="table panel" tabIndex={0} role="region" aria-label={words.requestTable}>
          <table>
            <thead>
              <tr>
                {Object.values(words.columns).map((name) => (
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

function RequestRow({
  asked: { at, method, path, status, ms, model, promptTokens, tokens, key },
}: {
  asked: RecentRequest;
}) {
  return (
    <tr>
      <td>{timeText(at)}</td>
      <td class="path" title={path}>
        {method} {path}
      </td>
      <td>
        <span class={statusTag(status)}>{status}</span>
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

/** A refused request is not a fault of the server. */
const statusTag = (status: number): string => (status < 400 ? "tag good" : status < 500 ? "tag plain-tag" : "tag bad");
