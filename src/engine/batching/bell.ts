/** Wakes a loop that sleeps while it has nothing to do. A ring while the loop is awake is not lost. */
export interface Bell {
  ring(): void;
  /** Forgets earlier rings: the loop handles their reasons now. */
  hush(): void;
  /** Resolves at the next ring; at once if it rang since `hush`. */
  rung(): Promise<void>;
}

export function makeBell(): Bell {
  let hasRung = false;
  let wake: (() => void) | undefined;
  return {
    ring() {
      hasRung = true;
      wake?.();
    },
    hush: () => void (hasRung = false), // at each step: allocates nothing
    async rung() {
      if (!hasRung) await new Promise<void>((resolve) => (wake = resolve));
      wake = undefined;
    },
  };
}
