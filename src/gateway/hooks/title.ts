/** The subject of a delivery in a few words, for operators: the event and its object. */
import { oneLine, withoutInvisible } from "../agent/boundary/index.ts";
import { ownValue, shortened } from "../../base/index.ts";
import type { HookAction } from "./action.ts";

const EVENT_CHARS_MAX = 40;
const TITLE_CHARS_MAX = 120;
/** Maximum number of characters of a text that are read. */
const LOOKED_AT_MAX = 2000;

/** Headers of senders that name the event: the first that is present, and its action. */
const EVENT_HEADERS = ["x-github-event", "x-gitlab-event", "x-gitea-event", "x-event-key", "sentry-hook-resource"];
const EVENT_AT = ["event_type", "event.type", "event", "object_kind", "type", "status"];

/** Paths of the event's object, the most telling first. */
const SUBJECT_AT = [
  "issue.title",
  "pull_request.title",
  "object_attributes.title",
  "discussion.title",
  "release.name",
  "head_commit.message",
  "workflow_run.name",
  "data.issue.title",
  "data.event.title",
  "data.title",
  "commonAnnotations.summary",
  "commonLabels.alertname",
  "groupLabels.alertname",
  "messages.0.subject",
  "subject",
  "title",
  "event.text",
  "message.text",
  "data.object.description",
  "summary",
  "name",
  "repository.full_name",
  "project.path_with_namespace",
];

export interface TitleSource {
  readonly actions: readonly HookAction[];
  /** The request's payload; absent: only the actions are used. */
  readonly payload?: unknown;
  /** By lower-case name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One line; undefined if nothing is known. Its parts are text from outsiders. */
export function titleOf({ actions, payload, headers = {} }: TitleSource): string | undefined {
  const at = (path: string): string => lineOf(ownValue(payload, path.split(".")));
  const first = (paths: readonly string[]): string => paths.map(at).find((text) => text !== "") ?? "";
  const sent = EVENT_HEADERS.map((name) => lineOf(headers[name])).find((text) => text !== "");
  const done = [sent ?? first(EVENT_AT), sent === undefined ? "" : at("action")].filter(Boolean).join(" ");
  const event = shortened(done, EVENT_CHARS_MAX);
  const title = [event, first(SUBJECT_AT)].filter(Boolean).join(": ") || firstLine(actions);
  return shortened(title, TITLE_CHARS_MAX).toWellFormed() || undefined;
}

/** The first line of the text that the model, or the main session, reads. */
function firstLine([action]: readonly HookAction[]): string {
  const tainted = !action ? [] : action.kind === "wake" ? action.text : action.message;
  const text = tainted
    .map((part) => part.text)
    .join("")
    .slice(0, LOOKED_AT_MAX);
  return lineOf(text.split(/[\r\n]/).find((line) => line.trim() !== ""));
}

const lineOf = (value: unknown): string =>
  typeof value === "string" || typeof value === "number"
    ? oneLine(withoutInvisible(String(value).slice(0, LOOKED_AT_MAX)))
    : "";
