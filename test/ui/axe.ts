/** What axe finds wrong with a page: rules that somebody could fall over. */
import type { Page } from "playwright-core";

const SOURCE = Bun.resolveSync("axe-core/axe.min.js", import.meta.dir);

interface Violation {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string }[];
}

/** Serious and critical ones, each with the first element that has it. */
export async function seriousOf(page: Page): Promise<string[]> {
  await page.evaluate(await Bun.file(SOURCE).text()); // through the debugger, which no policy holds for
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: unknown }> } };
    return (await axe.run()).violations;
  });
  return (violations as Violation[])
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}
