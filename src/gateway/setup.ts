/** The parts of the gateway that the command line sets up and checks: configuration, channels, mail, signatures. */
export type { Target } from "./channels/channel.ts";
export { checkChannels } from "./channels/health.ts";
export { loadChannels, type LoadedChannels } from "./channels/load.ts";
export { findChannelId, resolveTarget } from "./channels/resolve.ts";
export type { SignatureConfig } from "./hooks/config.ts";
export { signRequest, signatureSchemes } from "./hooks/ingress/signatures/index.ts";
export { openMailbox } from "./hooks/mail/imap.ts";
export { readPassword } from "./hooks/mail/password.ts";
export { findProvider, type MailProvider } from "./hooks/mail/providers.ts";
export { makeMappings } from "./hooks/mapping/index.ts";
export { auditConfiguration } from "./operate/findings.ts";
export { planMail, type MailSettings } from "./operate/mail-setup.ts";
export { readSnapshot } from "./operate/read.ts";
export { worstFirst, type Finding } from "./operate/report.ts";
