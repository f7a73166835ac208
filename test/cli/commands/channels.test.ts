/** `hearth channels`: real requests to servers that imitate the platforms. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkAll, sendTest } from "../../../src/cli/commands/channels.ts";
import { ReportedFailure } from "../../../src/cli/terminal/context.ts";
import type { Terminal } from "../../../src/cli/terminal/terminal.ts";
import { afterTest } from "../../cleanups.ts";

/** A Slack that knows one token and one channel. */
function startSlack() {
  const sent: unknown[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (request.headers.get("authorization") !== "Bearer xoxb-right") {
        return Response.json({ ok: false, error: "invalid_auth" });
      }
      const body = (await request.json()) as { channel?: string };
      if (!request.url.endsWith("/chat.postMessage")) return Response.json({ ok: true });
      if (body.channel !== "C0123456") return Response.json({ ok: false, error: "not_in_channel\u001b[31m" });
      sent.push(body);
      return Response.json({ ok: true, ts: "1.2" });
    },
  });
  afterTest(() => server.stop(true));
  return { sent, baseUrl: `http://127.0.0.1:${server.port}` };
}

function contextOf(channels: object) {
  const home = mkdtempSync(join(tmpdir(), "hearth-channels-"));
  afterTest(() => rmSync(home, { recursive: true, force: true }));
  const config = join(home, "hearth.json5");
  writeFileSync(config, JSON.stringify({ channels }));
  const written: string[] = [];
  const terminal = { write: (text: string) => void written.push(text) } as unknown as Terminal; // the used part
  const context = { terminal, sources: { env: {}, flags: { config }, home } };
  return { context, text: () => written.join("") };
}

test("check prints a line for each channel, and fails if a platform refuses the token or a section is wrong", async () => {
  const { baseUrl, sent } = startSlack();
  const right = contextOf({ slack: { botToken: "xoxb-right", baseUrl } });
  await checkAll(right.context);
  expect(right.text()).toMatch(/^CHANNEL +STATE +REASON *\nslack +ok *\n$/);
  const wrong = contextOf({ slack: { botToken: "xoxb-wrong", baseUrl }, telegram: { tokenFile: "none" } });
  await expect(checkAll(wrong.context)).rejects.toBeInstanceOf(ReportedFailure);
  expect(wrong.text()).toMatch(/^slack +failed +slack: .*invalid_auth/m);
  expect(wrong.text()).toMatch(/^telegram +unusable +channels\.telegram: .*none: cannot be read: ENOENT/m);
  await expect(checkAll(contextOf({}).context)).rejects.toThrow("no channel is configured");
  expect(sent).toEqual([]);
});

test("test sends one message, to the named recipient or the channel's default", async () => {
  const { baseUrl, sent } = startSlack();
  const { context, text } = contextOf({ slack: { botToken: "xoxb-right", baseUrl, defaultTo: "C0123456" } });
  await sendTest(context, "slack", {});
  await sendTest(context, "Slack", { to: "channel:C0123456", message: "hi" });
  expect(text()).toBe("sent to slack channel:C0123456\nsent to slack channel:C0123456\n");
  expect(sent).toMatchObject([{ text: expect.stringContaining("test message") }, { text: "hi" }]);
  await expect(sendTest(context, "slack", { to: "C0999999" })).rejects.toThrow(
    /did not reach slack channel:C0999999: .*not_in_channel \[31m/,
  );
  await expect(sendTest(context, "slack", { to: "#general" })).rejects.toThrow("with an id, not a name");
  await expect(sendTest(context, "slak", {})).rejects.toThrow("unknown channel 'slak': did you mean 'slack'?");
  await expect(sendTest(context, "telegram", {})).rejects.toThrow("channel 'telegram' is not configured");
  const none = contextOf({ slack: { botToken: "xoxb-right", baseUrl } });
  await expect(sendTest(none.context, "slack", {})).rejects.toThrow("name a recipient with --to");
});
