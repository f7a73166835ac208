/** Slack: events of an app, slash commands and clicks. Payloads: docs.slack.dev, "Events API", "Interactivity". */
import { fieldsOf, type Fields, jsonText } from "./fields.ts";
import { type Kind, lines, OTHER_CHARS_MAX, type Preset, summary } from "./preset.ts";

const said = (event: Fields): string =>
  lines(
    ["Channel", event.text("channel")],
    ["From", event.text("user")],
    ["Thread", event.text("thread_ts")],
    ["Text", event.long("text")],
    event.list("files", (file) => `file ${file.text("name")} (${file.text("mimetype")})`),
  );

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

export const slack: Preset = {
  mapping: {
    match: { path: "slack" },
    name: "Slack",
    handshake: "slack",
    // a message that addresses the app comes twice where it hears of both: as `message` and as `app_mention`
    itemId: "{{ payload.event.channel }}/{{ payload.event.ts }}",
  },
  scheme: "slack",
  deliveryIdAt: ["payload.event_id"],
  describe: ({ payload }) => {
    const fields = fieldsOf(payload);
    if (fields.has("command")) return command(fields);
    const event = fields.within("event");
    // what apps write, this one among them, would be answered for ever; also where Slack unfolds a link in it
    const isOfApp = event.has("bot_id") || event.has("message.bot_id") || event.has("previous_message.bot_id");
    if (isOfApp || event.text("subtype") === "bot_message") return undefined;
    const kind = event.text("type");
    const known = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
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
