/** The input and the output of an audit. */
import type { ChannelStanding } from "../channels/resolve.ts";
import type { Document, Path } from "../../base/config/index.ts";
import type { Finding } from "../hooks/admin/answers.ts";
import type { Mapping } from "../hooks/mapping/index.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

export type { Finding };

/** Worst first. */
const SEVERITIES: readonly Severity[] = ["error", "warn", "info"];
export type Severity = Finding["severity"];

export interface AuditParts {
  readonly snapshot: GatewaySnapshot;
  readonly document: Document | undefined;
  /** The address that the server listens on. */
  readonly hostname: string;
  /** True if the model API requires keys. */
  readonly hasApiKeys?: boolean;
  /** By the ids and aliases of all known channels. */
  readonly channels: ReadonlyMap<string, ChannelStanding>;
}

export interface ReportAt {
  readonly path: Path;
  readonly message: string;
  /** Default: the place of the path. */
  readonly where?: string;
}
export type Report = (severity: Severity, id: string, at: ReportAt) => void;

/** Sorts stably by severity. */
export const worstFirst = (findings: readonly Finding[]): Finding[] =>
  findings.toSorted((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));

/** The path of a mapping's settings; own mappings come first, as in the file. */
export const pathOf = ({ preset }: Mapping, index: number): Path =>
  preset ? ["hooks", "presetSettings", preset] : ["hooks", "mappings", index];

export interface AtMapping {
  readonly path: Path;
  readonly parts: AuditParts;
  readonly report: Report;
}
