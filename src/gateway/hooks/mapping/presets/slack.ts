/** Slack: events of an app, slash commands and clicks. Payloads: docs.slack.dev, "Events API", "Interactivity". */
import { fieldsOf, type Fields, jsonText } from "./fields.ts";
import { type Kind, kindIn, lines, OTHER_CHARS_MAX, type Preset, summary } from "./preset.ts";

function said(event: Fields): string {
  const message = messageIn(event);
  return lines(
    ["Channel", event.text("channel")],
    ["From", message.text("user")],
    ["Thread", message.text("thread_ts")],
    isChange(event) ? "The message was edited." : "",
    ["Text", message.long("text")],
    message.list("files", (file) => `file ${file.text("name")} (${file.text("mimetype")})`),
    message.text("text") === "" ? message.list("attachments", (each) => each.text("text", "fallback", "title")) : "",
  );
}

const KINDS: Readonly<Record<string, Kind>> = {
  app_mention: { about: "Someone addressed this app in Slack.", tell: said },
  message: { about: "Someone wrote in Slack.", tell: said },
  reaction_added: {
    about: "Someone reacted to a message in Slack.",
    tell: (event) =>
      lines(
        ["From", event.text("user")],
        ["Reaction", event.text("reaction")],
        ["Channel", event.text("item.channel")],
      ),
  },
  member_joined_channel: {
    about: "Someone joined a channel in Slack.",
    tell: (event) => lines(["Who", event.text("user")], ["Channel", event.text("channel")]),
  },
  channel_created: {
    about: "A channel was made in Slack.",
    tell: (event) => lines(["Name", event.text("channel.name")], ["By", event.text("channel.creator")]),
  },
};

/** Subtypes of messages written by a person; all others are notices of Slack. */
const PERSONS: readonly string[] = ["", "file_share", "thread_broadcast", "me_message"];

/** Events that repeat a message or report a person's view. */
const QUIET_KINDS = new Set(
  (
    "reaction_removed app_home_opened app_context_changed link_shared user_change user_status_changed " +
    "user_profile_changed user_huddle_changed dnd_updated dnd_updated_user file_created file_shared file_public " +
    "file_change file_deleted file_unshared pin_removed star_added star_removed message_metadata_posted " +
    "message_metadata_updated message_metadata_deleted assistant_thread_started assistant_thread_context_changed"
  ).split(" "),
);

/** The message of an event; for an edit the edited message. */
const messageIn = (event: Fields): Fields => (isChange(event) ? event.within("message") : event);
const isChange = (event: Fields): boolean => event.text("subtype") === "message_changed";

/** Slack sends the same event for an edit, for a link's preview, and for the first reply in a thread. */
const isEdit = (event: Fields): boolean =>
  isChange(event) && event.exact("message.text") !== event.exact("previous_message.text");

/** An answer to an app's message, perhaps our own, could start an endless exchange. */
const isOfApp = (event: Fields): boolean =>
  event.text("subtype") === "bot_message" ||
  ["bot_id", "message.bot_id", "previous_message.bot_id"].some((path) => event.has(path));

function isByPerson(event: Fields): boolean {
  if (isChange(event) && !isEdit(event)) return false;
  const message = messageIn(event);
  const hasContent = message.text("text") !== "" || message.has("files.0") || message.has("attachments.0");
  return hasContent && PERSONS.includes(message.text("subtype")) && message.text("user") !== "USLACKBOT";
}

/** Interactive requests that need no turn; Slack asks for suggestions at each keystroke. */
const QUIET_REQUESTS: readonly string[] = [
  "view_closed",
  "dialog_cancellation",
  "block_suggestion",
  "dialog_suggestion",
  "app_rate_limited",
];

function leavesOut(payload: unknown): boolean {
  const fields = fieldsOf(payload);
  if (fields.has("ssl_check")) return true; // Slack checks the certificate of a command's address
  if (fields.has("command")) return false;
  if (QUIET_REQUESTS.includes(fields.text("type"))) return true;
  const event = fields.within("event");
  const kind = event.text("type");
  const self = fields.has("authorizations.0.is_bot") ? fields.text("authorizations.0.user_id") : "";
  if (self !== "" && messageIn(event).text("user") === self) return true;
  if (isOfApp(event) || QUIET_KINDS.has(kind)) return true;
  return (kind === "message" || kind === "app_mention") && !isByPerson(event);
}

export const slack: Preset = {
  mapping: { match: { path: "slack" }, name: "Slack", handshake: "slack" },
  scheme: "slack",
  deliveryIdAt: ["payload.event_id"],
  leavesOut: ({ payload }) => leavesOut(payload),
  /**
   * If the app subscribes to both, a message that addresses it is sent twice: as `message` and as `app_mention`. An
   * edit keeps the time of its message, so that an answered message is not answered again.
   */
  itemId: ({ payload }) => {
    const event = fieldsOf(payload).within("event");
    const [channel, time] = [event.text("channel"), messageIn(event).text("ts")];
    return channel === "" || time === "" ? undefined : `${channel}/${time}`;
  },
  describe: ({ payload }) => {
    const fields = fieldsOf(payload);
    if (fields.has("command")) return command(fields);
    const event = fields.within("event");
    if (isOfApp(event)) return undefined;
    const known = kindIn(KINDS, event.text("type"));
    if (known) return summary(`${known.about} Tell what is wanted, and whether anyone has to act.`, known.tell(event));
    return summary("Something happened in Slack. Tell what matters in it.", jsonText(payload, OTHER_CHARS_MAX));
  },
};

function command(fields: Fields) {
  const text = lines(
    ["Command", fields.text("command")],
    ["Text", fields.long("text")],
    ["From", fields.text("user_name", "user_id")],
    ["Channel", fields.text("channel_name", "channel_id")],
  );
  return summary("Someone called a command of this app in Slack. Answer it.", text);
}
