/** The secrets of a configuration: the path of each, and whether its scheme accepts it. */
import type { Path } from "../../base/config/index.ts";
import type { HooksConfig, SignatureConfig } from "./config.ts";
import { presets } from "./mapping/presets/index.ts";
import type { Preset } from "./mapping/presets/preset.ts";
import { checkCallbackSecret, checkSecret } from "./ingress/signatures/index.ts";
import type { SecretVerdict } from "./ingress/signatures/scheme.ts";

export interface FoundSecret {
  readonly path: Path;
  readonly verdict: SecretVerdict;
}

export function secretsOf({ mappings, presetSettings, callbacks }: HooksConfig): readonly FoundSecret[] {
  const own = mappings.flatMap(({ auth }, i) =>
    auth ? verdicts(auth, ["hooks", "mappings", i, "auth", "secrets"]) : [],
  );
  const brought = Object.entries(presetSettings).flatMap(([name, settings]) => {
    const { scheme }: Preset = presets[name as keyof typeof presets]; // the schema restricts the names
    const path = ["hooks", "presetSettings", name];
    const bySettings = settings?.auth ? verdicts(settings.auth, [...path, "auth", "secrets"]) : [];
    return scheme && settings?.secrets
      ? [...verdicts({ scheme, secrets: settings.secrets } as SignatureConfig, [...path, "secrets"]), ...bySettings]
      : bySettings;
  });
  const { secret } = callbacks;
  const called =
    secret === undefined ? [] : [{ path: ["hooks", "callbacks", "secret"], verdict: checkCallbackSecret(secret) }];
  return [...own, ...brought, ...called];
}

/** @param path of the list, or of the single secret */
function verdicts(auth: SignatureConfig, path: Path): FoundSecret[] {
  const { secrets } = auth;
  const isOne = secrets.length === 1;
  return secrets.map(({ value }, i) => ({ path: isOne ? path : [...path, i], verdict: checkSecret(auth, value) }));
}
