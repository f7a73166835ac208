/** Explains the gateway, and how to turn it on. */
import { useWords } from "../context.ts";
import { CopyButton } from "../base/copy.tsx";
import { Icon } from "../base/icons.tsx";

/** A complete configuration: GitHub wakes a model, and Slack gets its answer. */
const EXAMPLE = `{
  gateway: { token: "\${HEARTH_GATEWAY_TOKEN}" },
  hooks: {
    enabled: true,
    presets: ["github"],
    presetSettings: {
      github: {
        secrets: "\${GITHUB_WEBHOOK_SECRET}",
        channel: "slack",
        to: "C0123456789",
      },
    },
  },
  channels: {
    slack: { botToken: "\${SLACK_BOT_TOKEN}", defaultTo: "C0123456789" },
  },
  agents: { defaults: { model: "hearth" } },
}
`;

/** @param isLocked true if there is a gateway without a token for this page */
export function Off({ isLocked }: { isLocked: boolean }) {
  const { gateway, help } = useWords();
  const words = gateway.off;
  if (isLocked) return <p class="empty-line">{words.locked}</p>;
  return (
    <div class="off">
      <Icon name="hook" size={34} />
      <h2>{words.title}</h2>
      <p>{words.text}</p>
      <p class="quiet">{words.how}</p>
      <figure class="code">
        <figcaption>
          <span>hearth.json5</span>
          <CopyButton text={() => EXAMPLE} label={words.copy} />
        </figcaption>
        <pre tabIndex={0}>{EXAMPLE}</pre>
      </figure>
      <p class="quiet">
        {words.docs}{" "}
        <a href="docs" target="_blank" rel="noopener">
          {help.api}
        </a>
      </p>
    </div>
  );
}
