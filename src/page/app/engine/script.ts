/** The script URLs that this page makes: only its own Workers'. */
import type { PageWorker } from "../../engine/client.ts";

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): unknown };
}

/** @param name of the element in the page's head that holds the URL */
export function startWorker<W = PageWorker>(name: "hearth-worker" | "hearth-webllm" | "hearth-files"): W {
  const address = document.querySelector<HTMLMetaElement>(`meta[name=${name}]`)?.content ?? "";
  if (!/^ui\/((?:worker-main|file-worker)-[0-9a-z]+|webllm)\.js$/.test(address)) {
    throw new Error("the page does not say where its Worker is");
  }
  return new Worker(trusted(address) as string, { type: "module" }) as unknown as W;
}

/** Browsers with Trusted Types do not accept plain text as a script URL. */
function trusted(address: string): unknown {
  const { trustedTypes, hearthPolicy } = globalThis as typeof globalThis & {
    trustedTypes?: TrustedTypes;
    hearthPolicy?: ReturnType<TrustedTypes["createPolicy"]>;
  };
  if (!trustedTypes) return address;
  const policy = hearthPolicy ?? trustedTypes.createPolicy("hearth", { createScriptURL: (url) => url });
  Object.assign(globalThis, { hearthPolicy: policy }); // a policy can be made only once
  return policy.createScriptURL(address);
}
