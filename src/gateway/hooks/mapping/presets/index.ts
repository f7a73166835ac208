/** Presets by name. */
import type { PresetName } from "../../config.ts";
import { alertmanager } from "./alertmanager.ts";
import { generic } from "./generic.ts";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";
import { mail } from "./mail.ts";
import type { Preset } from "./preset.ts";
import { sentry } from "./sentry.ts";
import { slack } from "./slack.ts";
import { stripe } from "./stripe.ts";

export const presets: Readonly<Record<PresetName, Preset>> = {
  mail,
  github,
  gitlab,
  stripe,
  slack,
  sentry,
  alertmanager,
  generic,
};
