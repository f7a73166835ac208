/** Tools of type `mcp` in a Responses request: all tools of a tool server, or some of them. */
import {
  AppError,
  isObject,
  optional,
  readFields,
  readList,
  readText,
  unexpected,
  type Fields,
} from "../../base/index.ts";
import { bearerOf, readHeaders, type RequestedServer } from "../answers/server-tools.ts";

export const isMcp = (tool: Fields): boolean => tool["type"] === "mcp";

/** Throws `bad_request`. */
export function readRequestedServers(body: { tools?: unknown[] }): readonly RequestedServer[] {
  const all = readList(readFields)(body.tools ?? [], "tools");
  return all.flatMap((tool, i) => (isMcp(tool) ? [readRequestedServer(tool, `tools.${i}`)] : []));
}

/** Fields with which a request would choose a server in other ways. */
const OTHER_WAYS = ["connector_id", "tunnel_id"];
/** Fields that belong to `server_url`. */
const KEYS = ["authorization", "headers"];

function readRequestedServer(tool: Fields, path: string): RequestedServer {
  const isGiven = (key: string): boolean => tool[key] !== undefined && tool[key] !== null;
  const url = optional(readText)(tool["server_url"], `${path}.server_url`);
  const wrong = [...OTHER_WAYS, ...(url === undefined ? KEYS : [])].find(isGiven);
  if (wrong !== undefined) {
    const message = "requests name a server of the configuration by its server_label, without address or key";
    throw new AppError("bad_request", `${path}.${wrong}: ${message}`);
  }
  const approval = tool["require_approval"];
  if (approval !== "never") {
    throw unexpected(`${path}.require_approval`, '"never": calls cannot wait for an approval here', approval);
  }
  const names = tool["allowed_tools"];
  const list = isObject(names) ? names["tool_names"] : names;
  const allowed = optional(readList(readText))(list, `${path}.allowed_tools`);
  return {
    label: { text: readText(tool["server_label"], `${path}.server_label`), path: `${path}.server_label` },
    url: url === undefined ? undefined : { text: url, path: `${path}.server_url` },
    headers: {
      ...readHeaders(tool["headers"], `${path}.headers`),
      ...bearerOf(tool["authorization"], `${path}.authorization`),
    },
    accepts: (name) => allowed?.includes(name) ?? true,
    named: { names: allowed ?? [], path: `${path}.allowed_tools` },
  };
}
