/**
 * `mcp_servers` of an Anthropic request, whose calls the server runs: which tools of which servers, by
 * `tool_configuration` or by a toolset among `tools`.
 */
import {
  AppError,
  optional,
  readBoolean,
  readFields,
  readList,
  readText,
  unexpected,
  type Fields,
} from "../../base/index.ts";
import { bearerOf, type RequestedServer } from "../answers/server-tools.ts";
import type { MessagesBody } from "../schema/messages.ts";

/** True for a tool that stands for tools of a server. */
export const isToolset = (type: unknown): boolean => type === "mcp_toolset";

type Choice = Pick<RequestedServer, "accepts" | "named">;

/** Throws `bad_request`. */
export function readRequestedServers({ mcp_servers: given, tools }: MessagesBody): readonly RequestedServer[] {
  const toolsets = readToolsets(tools ?? []);
  const servers = readList(readFields)(given ?? [], "mcp_servers");
  const names = servers.map((server, i) => readText(server["name"], `mcp_servers.${i}.name`));
  const stray = [...toolsets].find(([name]) => !names.includes(name));
  if (stray) throw unexpected(`${stray[1].named.path}.mcp_server_name`, "a name of 'mcp_servers'", stray[0]);
  return servers.map((server, i): RequestedServer => {
    const path = `mcp_servers.${i}`;
    const name = names[i]!;
    const url = optional(readText)(server["url"], `${path}.url`) ?? "";
    const key = server["authorization_token"];
    if (url === "" && key !== undefined && key !== null) {
      const message = "a server of the configuration has its own key";
      throw new AppError("bad_request", `${path}.authorization_token: ${message}`);
    }
    return {
      label: { text: name, path: `${path}.name` },
      url: url === "" ? undefined : { text: url, path: `${path}.url` },
      headers: bearerOf(key, `${path}.authorization_token`),
      ...(toolsets.get(name) ?? configured(server, path)),
    };
  });
}

/** The choice of `tool_configuration`, which older clients send. */
function configured(server: Fields, path: string): Choice {
  const at = `${path}.tool_configuration`;
  const { enabled, allowed_tools: list } = optional(readFields)(server["tool_configuration"], at) ?? {};
  const isOn = optional(readBoolean)(enabled, `${at}.enabled`) ?? true;
  const allowed = optional(readList(readText))(list, `${at}.allowed_tools`);
  return {
    accepts: (name) => isOn && (allowed?.includes(name) ?? true),
    named: { names: allowed ?? [], path: `${at}.allowed_tools` },
  };
}

/** The choices of toolsets, by name of the server. */
function readToolsets(tools: readonly unknown[]): ReadonlyMap<string, Choice> {
  const found = new Map<string, Choice>();
  for (const [i, value] of tools.entries()) {
    const path = `tools.${i}`;
    const tool = readFields(value, path);
    if (!isToolset(tool["type"])) continue;
    const name = readText(tool["mcp_server_name"], `${path}.mcp_server_name`);
    if (found.has(name)) throw unexpected(`${path}.mcp_server_name`, "one toolset for each server", name);
    found.set(name, readToolset(tool, path));
  }
  return found;
}

function readToolset(tool: Fields, path: string): Choice {
  if (tool["tools"] !== undefined && tool["tools"] !== null) {
    throw new AppError("bad_request", `${path}.tools: not supported; the server is asked for its tools`);
  }
  const isOn = enabledIn(tool["default_config"], `${path}.default_config`) ?? true;
  const configs = Object.entries(optional(readFields)(tool["configs"], `${path}.configs`) ?? {});
  const own = new Map(configs.map(([name, config]) => [name, enabledIn(config, `${path}.configs.${name}`) ?? isOn]));
  return { accepts: (name) => own.get(name) ?? isOn, named: { names: [...own.keys()], path } };
}

const enabledIn = (config: unknown, path: string): boolean | undefined =>
  optional(readBoolean)(optional(readFields)(config, path)?.["enabled"], `${path}.enabled`);
