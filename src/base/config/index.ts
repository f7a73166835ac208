/** Settings from flags, the environment and hearth.json5. */
export {
  configPath,
  findEnv,
  hasSections,
  readConfig,
  readConfigFile,
  readConfigPart,
  readSettings,
  type Address,
  type Config,
  type ConfigSources,
  type MetricsDialect,
  type TlsFiles,
} from "./config.ts";
export { describePath, type Document } from "./document.ts";
export { editJson5, type Edit } from "./edit.ts";
export type { Path } from "./positions.ts";
export { reachHereDirectly } from "./proxies.ts";
export { parseAddress } from "./values.ts";
