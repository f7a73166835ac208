/** The address of a model's registry: the host in its name, over https unless the request allows http. */
import { AppError } from "../../base/index.ts";
import { parseReference, type ModelName } from "../store/name.ts";

export interface Address {
  readonly name: ModelName;
  /** `https://host/` */
  readonly base: URL;
  /** Plain http is allowed. */
  readonly insecure: boolean;
}

/**
 * @param text `[scheme://][host/][namespace/]model[:tag]`, as the client wrote it
 * @param insecure uses http, unless the name says https. Throws `bad_request`.
 */
export function parseAddress(text: string, { insecure }: { insecure: boolean }): Address {
  const name = parseReference(text);
  const asked = /^([a-z]+):\/\//i.exec(text.trim())?.[1]?.toLowerCase();
  if (asked !== undefined && asked !== "http" && asked !== "https") {
    throw new AppError("bad_request", `expected a name with http or https, got protocol ${asked}`);
  }
  if (asked === "http" && !insecure) throw new AppError("bad_request", "insecure protocol http");
  const scheme = insecure ? (asked ?? "http") : "https";
  const base = URL.parse(`${scheme}://${name.host}/`);
  if (!base || base.pathname !== "/" || base.username) throw new AppError("bad_request", "invalid model name");
  return { name, base, insecure };
}

/** The URL of a path in a model's repository. */
export const repositoryUrl = ({ base, name }: Address, rest: string): URL =>
  new URL(`v2/${name.namespace}/${name.model}/${rest}`, base);
