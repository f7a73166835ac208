/** Accessibility violations that axe finds in a page. */
import type { Page } from "playwright-core";

const SOURCE = Bun.resolveSync("axe-core/axe.min.js", import.meta.dir);

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** Violations of any rule, each with its first element. */
export async function violationsOf(page: Page): Promise<string[]> {
  const isLoaded = await page.evaluate(() => "axe" in globalThis);
  if (!isLoaded) await page.evaluate(await Bun.file(SOURCE).text()); // the debugger bypasses the page's policy
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<{ violations: unknown }> } };
    return (await axe.run({ resultTypes: ["violations"] })).violations;
  });
  return (violations as Violation[]).map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}
