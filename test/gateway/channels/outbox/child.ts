/**
 * A process with an outbox, to be killed: adds the same texts at every start, sends until all have ended, then prints
 * so. Arguments: the database, the stand-ins' addresses, the number of texts per recipient.
 */
import { makeLogger } from "../../../../src/base/log.ts";
import { queryOne } from "../../../../src/gateway/database/store.ts";
import { alone } from "../../../../src/gateway/database/peers.ts";
import { Outbox } from "../../../../src/gateway/channels/outbox/outbox.ts";
import { outboxMigrations } from "../../../../src/gateway/channels/outbox/tables.ts";
import { openStore } from "../../../stores.ts";
import { channelsFrom } from "../fixtures.ts";
import { sectionFor } from "../platforms.ts";

const [path = "", telegramUrl = "", discordUrl = "", count = "0"] = process.argv.slice(2);
const channels = await channelsFrom({
  telegram: sectionFor("telegram", telegramUrl, { textChunkLimit: 50 }),
  discord: sectionFor("discord", discordUrl, { textChunkLimit: 50 }),
});
const store = openStore(outboxMigrations, path);
const log = makeLogger({ write: () => {}, now: Date.now, debug: false });
const outbox = new Outbox({ store, peers: alone(), channels: () => channels, now: Date.now, log });

const RECIPIENTS = { telegram: ["1001", "1002", "1003"], discord: ["channel:100001", "channel:100002"] };
await store.write(function* () {
  for (const [channel, recipients] of Object.entries(RECIPIENTS)) {
    for (const to of recipients) {
      for (let i = 0; i < Number(count); i++) {
        const id = `${channel}/${to}/${i}`;
        const text = `${id} first ${"x".repeat(10)}\n${id} second`;
        yield* outbox.add({ groupId: id, target: { channel, to }, text, now: Date.now() });
      }
    }
  }
});
await outbox.start();
const OPEN = "SELECT COUNT(*) AS n FROM outbox WHERE settled_at IS NULL";
while ((await store.read(() => queryOne<{ n: number }>(OPEN)))!.n > 0) await Bun.sleep(20);
await outbox.stop();
process.stdout.write("done\n");
process.exit(0);
