/** Accessibility violations that axe finds in a page. */
import type { Page } from "playwright-core";

const SOURCE = Bun.resolveSync("axe-core/axe.min.js", import.meta.dir);

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** Violations of any rule, each with its first element. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(await Bun.file(SOURCE).text()); // through the debugger, which bypasses the page's policy
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: unknown }> } };
    return (await axe.run()).violations;
  });
  return (violations as Violation[]).map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}
