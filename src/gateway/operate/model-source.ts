/** The models of a configuration, for an audit without a running server. */
import type { ModelSource } from "../agent/models.ts";
import type { Config } from "../../base/config/index.ts";
import { makeRemoteRuntime } from "../../runtime/index.ts";
import { EMBEDDED_NAME, openOthers, openStore, withOthers } from "../../library/index.ts";
import { isHostless, parseReference } from "../../library/portable.ts";
import { makeLogger } from "../../base/index.ts";

const ASK_MS = 3000;

type Settings = Pick<Config, "models" | "modelsUrl" | "modelsKey" | "modelsSource" | "otherStores">;

/** Changes nothing. The model that ships with Hearth counts as present: a start installs it. */
export function modelSourceOf(config: Settings): ModelSource {
  const { models: root, modelsUrl: url, modelsKey: key } = config;
  if (url !== undefined) {
    const remote = makeRemoteRuntime({ url, key, silenceMs: ASK_MS, namesWaitMs: ASK_MS, fetch, now: Date.now });
    return { modelNames: remote.modelNames, canChat: remote.canChat, server: url };
  }
  return {
    async modelNames() {
      const log = makeLogger({ write: () => {}, now: Date.now, debug: false });
      const own = await openStore(root);
      const store = withOthers(own, await openOthers(config.otherStores, { own: own.root, log }));
      return [EMBEDDED_NAME, ...(await store.list()).map(({ displayName }) => displayName)];
    },
    ...(config.modelsSource && { isOffered: async (name: string) => isHostless(parseReference(name)) }),
  };
}
