/** Repeats all runs that were given up, or all failed replies, after a look at their number. */
import { useSignal } from "@preact/signals";
import { useApp, useWords } from "../context.ts";
import { Dialog } from "../base/dialog.tsx";
import { reasonOf } from "../base/reason.ts";
import { Button } from "../base/controls.tsx";

/** The server's answer to `POST /hooks-admin/replay`. */
interface Page {
  readonly found: number;
  readonly replayed: number;
  readonly skipped: readonly { readonly reason: string }[];
  readonly next: string | null;
  readonly retryAfterMs: number | null;
}

interface ReplayAllProps {
  /** The chosen state of deliveries. */
  readonly state: string;
  /** Empty: every path. */
  readonly path: string;
  readonly onDone: () => void;
}

/** Nothing for states whose runs need no repetition. */
export function ReplayAll({ state, ...rest }: ReplayAllProps) {
  if (state === "dead") return <Replay key={state} what="dead" {...rest} />;
  return state === "failed" ? <Replay key={state} what="replies" {...rest} /> : null;
}

type ReplayProps = Omit<ReplayAllProps, "state"> & { readonly what: "dead" | "replies" };

function Replay({ what, path, onDone }: ReplayProps) {
  const { admin, notices } = useApp();
  const words = useWords();
  const { deliveries: texts } = words;
  const found = useSignal<number | undefined>(undefined);
  const left = useSignal<number | undefined>(undefined);
  const filter = { what, ...(path === "" ? {} : { path }) };
  const ask = (more: object): Promise<Page> =>
    admin.ask<Page>("replay", { method: "POST", body: { ...filter, ...more } });
  const tell = (error: unknown): void => notices.say(reasonOf(words, error));
  const close = (): void => {
    found.value = left.value = undefined;
  };
  const run = async (): Promise<void> => {
    let [replayed, skipped] = [0, 0];
    for (let after: string | null = ""; after !== null && found.peek() !== undefined;) {
      const page: Page = await ask({ after });
      replayed += page.replayed;
      skipped += page.skipped.length;
      after = page.next;
      left.value = page.found - page.replayed - page.skipped.length;
      if (page.retryAfterMs !== null) await new Promise((resolve) => setTimeout(resolve, page.retryAfterMs ?? 0));
    }
    notices.say(texts.replayedAll(replayed, skipped));
  };
  const start = (): void => {
    left.value = found.value;
    void run().catch(tell).finally(close).finally(onDone);
  };
  return (
    <>
      <Button onClick={() => void ask({ dryRun: true }).then((page) => (found.value = page.found), tell)}>
        {what === "dead" ? texts.replayDead : texts.replayReplies}
      </Button>
      {found.value !== undefined && (
        <Dialog title={what === "dead" ? texts.replayDead : texts.replayReplies} onClose={close}>
          <div class="stack">
            <p>{what === "dead" ? texts.deadCount(found.value) : texts.lostCount(found.value)}</p>
            {left.value !== undefined && <p class="quiet">{texts.replaysLeft(left.value)}</p>}
            <div class="row">
              <Button look="primary" disabled={found.value === 0 || left.value !== undefined} onClick={start}>
                {texts.replay}
              </Button>
            </div>
          </div>
        </Dialog>
      )}
    </>
  );
}
