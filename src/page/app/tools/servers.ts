/** The tool servers of the server's configuration. */
import { signal, type ReadonlySignal } from "@preact/signals";
import { abortable } from "../../../base/index.ts";
import type { Api } from "../base/api.ts";

export interface OfferedTool {
  readonly server: string;
  readonly tool: string;
  /** True: it is called without a question. */
  readonly harmless: boolean;
  /** The same form as in `tools` of a chat. */
  readonly definition: { readonly function: { readonly name: string } };
}

export interface ToolServer {
  readonly name: string;
  readonly tools: readonly Omit<OfferedTool, "server">[];
  /** The reason that the server has no tools now. */
  readonly problem?: string;
}

export class ToolServers {
  readonly #api: Api;
  readonly #report: (server: string, why: string) => void;
  readonly #list = signal<readonly ToolServer[] | undefined>(undefined);
  #loading: Promise<readonly ToolServer[]> | undefined;

  /** @param report tells the user why a server that is switched on has no tools */
  constructor(api: Api, report: (server: string, why: string) => void) {
    this.#api = api;
    this.#report = report;
  }

  /** Undefined: not loaded yet. */
  get list(): ReadonlySignal<readonly ToolServer[] | undefined> {
    return this.#list;
  }

  /** Asks the server, which connects to its tool servers. Throws like the API. */
  load(): Promise<readonly ToolServer[]> {
    this.#loading ??= this.#api
      .json<{ servers: readonly ToolServer[] }>("/api/mcp")
      .then(({ servers }) => (this.#list.value = servers))
      .finally(() => (this.#loading = undefined));
    return this.#loading;
  }

  /** The tools of some servers. A server that does not answer is reported and left out. */
  async offer(names: readonly string[], signal: AbortSignal): Promise<readonly OfferedTool[]> {
    if (names.length === 0) return [];
    const known = this.#list.peek() ?? [];
    const isReady = names.every((name) => known.some((each) => each.name === name && each.problem === undefined));
    const list = isReady ? known : await abortable(this.load(), [signal]);
    return names.flatMap((name) => {
      const found = list.find((each) => each.name === name);
      if (found?.problem === undefined && found) return found.tools.map((tool) => ({ ...tool, server: name }));
      this.#report(name, found?.problem ?? "");
      return [];
    });
  }

  isHarmless({ server, name }: { readonly server: string; readonly name: string }): boolean {
    const tools = this.#list.peek()?.find((each) => each.name === server)?.tools ?? [];
    return tools.some(({ tool, harmless }) => tool === name && harmless);
  }
}
