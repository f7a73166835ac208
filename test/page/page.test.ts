/**
 * The page, in one headless browser, with the embedded model on a real server. Cases are in separate files. Each
 * run has chats and one language; half of views, failures, hostile input, formulas and tools; a third of the others.
 */
import { afterAll, afterEach, beforeAll, describe } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { drawn } from "../seed.ts";
import { browserRefusal } from "./engine/chromium.ts";
import { belowPathCases } from "./below-path-cases.ts";
import { catalogueCases } from "./catalogue-cases.ts";
import { chatCases } from "./chat-cases.ts";
import { documentCases } from "./document-cases.ts";
import { editCases } from "./edit-cases.ts";
import { endCases } from "./end-cases.ts";
import { exportCases } from "./export-cases.ts";
import { findingCases } from "./finding-cases.ts";
import { frameCases } from "./frame-cases.ts";
import { formulaCases } from "./formula-cases.ts";
import { inPageCases } from "./in-page-cases.ts";
import { languageCases } from "./language-cases.ts";
import { modelFilesCases } from "./model-files-cases.ts";
import { compareCases } from "./compare-cases.ts";
import { libraryCases } from "./library-cases.ts";
import { promptCases } from "./prompt-cases.ts";
import { titleCases } from "./title-cases.ts";
import { toolCases } from "./tool-cases.ts";
import { speechCases } from "./speech-cases.ts";
import { startWorld, type World } from "./page.ts";
import { failureCases } from "./failure-cases.ts";
import { typingCases } from "./typing-cases.ts";
import { undoCases } from "./undo-cases.ts";
import { viewCases } from "./view-cases.ts";
import { webLlmCases } from "./webllm-cases.ts";

const refusal = await browserRefusal();
describe.skipIf(refusal !== undefined)(`the page in a headless browser${refusal ? ` (${refusal})` : ""}`, () => {
  let world: World;
  const home = mkdtempSync(join(tmpdir(), "hearth-ui-"));
  beforeAll(async () => void (world = await startWorld(home)), 60_000);
  afterAll(async () => {
    await world.browser.close();
    await world.hearth.stop();
    rmSync(home, { recursive: true, force: true });
  });

  afterEach(() => world.closePages());

  const always = [...chatCases, ...languageCases];
  const often = [viewCases, failureCases, formulaCases, toolCases].flat();
  const others = [
    inPageCases,
    webLlmCases,
    typingCases,
    belowPathCases,
    undoCases,
    findingCases,
    editCases,
    endCases,
    exportCases,
    frameCases,
    catalogueCases,
    documentCases,
    modelFilesCases,
    libraryCases,
    promptCases,
    compareCases,
    titleCases,
    speechCases,
  ].flat();
  const some = [
    ...drawn("main cases of the page", often, Math.ceil(often.length / 2)),
    ...drawn("cases of the page", others, Math.ceil(others.length / 3)),
  ];
  for (const register of [...always, ...some]) register(() => world);
});
