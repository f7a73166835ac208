/** A switch for each tool server, in the settings of a chat. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useApp, useWords } from "../context.ts";
import { reasonOf } from "../base/reason.ts";
import type { Chat, Standing } from "../chat/tree.ts";
import type { ToolServer } from "./servers.ts";
import { SmallButton } from "../base/controls.tsx";

type ToolSettings = Pick<Chat, "servers" | "standing">;

interface SwitchesProps {
  readonly settings: ToolSettings;
  readonly onChange: (fields: ToolSettings) => void;
}

export function ServerSwitches({ settings, onChange }: SwitchesProps) {
  const { toolServers } = useApp();
  const words = useWords();
  const problem = useSignal("");
  useEffect(() => {
    toolServers.load().catch((error: unknown) => (problem.value = reasonOf(words, error)));
  }, []);
  const known = toolServers.list.value;
  const gone = known ? (settings.servers ?? []).filter((name) => !known.some((each) => each.name === name)) : [];
  const list = [
    ...(known ?? []),
    ...gone.map((name) => ({ name, tools: [], problem: words.toolServers.missing(name, "") })),
  ];
  if (list.length === 0 && problem.value === "") return null;
  return (
    <fieldset class="field">
      <legend>{words.toolServers.title}</legend>
      <small class="quiet">{words.toolServers.hint}</small>
      {problem.value !== "" && <small class="problem">{problem.value}</small>}
      {list.map((server) => (
        <ServerSwitch key={server.name} {...{ server, settings, onChange }} />
      ))}
    </fieldset>
  );
}

function ServerSwitch({ server, settings, onChange }: SwitchesProps & { server: ToolServer }) {
  const { toolServers: words } = useWords();
  const { name, tools, problem } = server;
  const { servers = [], standing = {} } = settings;
  const others = servers.filter((each) => each !== name);
  const own = Object.entries(standing).filter(([tool]) => tool.startsWith(`${name}/`));
  const namesOf = (decision: Standing): string =>
    own.flatMap(([tool, each]) => (each === decision ? [tool.slice(name.length + 1)] : [])).join(", ");
  const [always, never] = [namesOf("always"), namesOf("never")];
  const forget = (): void =>
    onChange({
      standing: Object.fromEntries(Object.entries(standing).filter(([tool]) => !tool.startsWith(`${name}/`))),
    });
  return (
    <div class="server-switch">
      <label class="check">
        <input
          type="checkbox"
          role="switch"
          checked={servers.includes(name)}
          onChange={(event) => onChange({ servers: event.currentTarget.checked ? [...others, name] : others })}
        />
        <span>
          {name}
          <small class={problem === undefined ? "quiet" : "problem"}>{problem ?? words.tools(tools.length)}</small>
        </span>
      </label>
      {own.length > 0 && (
        <p class="quiet">
          {always !== "" && words.always(always)} {never !== "" && words.never(never)}{" "}
          <SmallButton onClick={forget}>{words.askAgain}</SmallButton>
        </p>
      )}
    </div>
  );
}
