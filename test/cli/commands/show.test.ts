import { expect, test } from "bun:test";
import { describe } from "../../../src/cli/commands/show.ts";

test("show prints the error of a template that does not parse", () => {
  const problem = "chat template: unexpected end of template";
  expect(describe({ template_error: problem }, false)).toMatch(
    /Template\n\s+does not parse\s+chat template: unexpected/,
  );
  expect(describe({ details: { family: "llama" } }, false)).not.toContain("Template");
});
