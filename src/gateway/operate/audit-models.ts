/** Audits the models that the configuration names: whether each exists and generates text. */
import { findModel, type ModelSource } from "../agent/models.ts";
import { abortable, AppError, messageOf } from "../../base/index.ts";
import { describePath, type Path } from "../../base/config/index.ts";
import { ownModelOf } from "../hooks/ingress/checks.ts";
import { makeMappings } from "../hooks/mapping/index.ts";
import { pathOf, type Finding } from "./report.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

/** Time limit for listing the models. */
const NAMES_MS = 2000;

interface Named {
  readonly path: Path;
  readonly reference: string;
  /** True if runs use it: they wait while it is missing. False: requests may only name it. */
  readonly isRun: boolean;
}

/** Never throws: an unreachable model server is a finding. */
export async function auditModels(snapshot: GatewaySnapshot, models: ModelSource): Promise<Finding[]> {
  const findings: Finding[] = [];
  const names = namesSoon(models); // shared by all checks
  names.catch(() => {});
  for (const named of modelsNamed(snapshot)) {
    try {
      const found = await auditModel(named, snapshot, { ...models, modelNames: () => names });
      if (!found) continue;
      const { path } = named;
      findings.push({ ...found, key: describePath(path), where: snapshot.where(path) });
    } catch (error) {
      const message = `the models cannot be asked for: ${messageOf(error)}`;
      const at = { key: "models", where: snapshot.where(["models"]) };
      return [...findings, { ...at, id: "models-unknown", severity: "warn", message }];
    }
  }
  return findings;
}

/** Throws `upstream` at the time limit: a start waits for this. */
async function namesSoon({ modelNames }: ModelSource): Promise<readonly string[]> {
  const late = AbortSignal.timeout(NAMES_MS);
  try {
    return await abortable(modelNames(), [late]);
  } catch (error) {
    if (!late.aborted) throw error;
    throw new AppError("upstream", `no answer in ${NAMES_MS / 1000} s`, { cause: error });
  }
}

type Found = Pick<Finding, "id" | "severity" | "message">;

async function auditModel(
  { reference, isRun }: Named,
  { agents }: GatewaySnapshot,
  models: ModelSource,
): Promise<Found | undefined> {
  const answer = await findModel({ agents, reference, fallback: reference }, models);
  if (!("error" in answer)) {
    if ((await models.canChat?.(answer.model)) !== false) return undefined;
    const message = `model '${answer.model}' writes no text (it makes embeddings): every run on it fails`;
    return { id: "model-cannot-chat", severity: "error", message };
  }
  const { code, name } = answer.error;
  if (code === "model_not_allowed") return undefined; // `auditRefused` reports it
  const message = `model '${name}' is not there`;
  if (!isRun)
    return { id: "model-missing", severity: "warn", message: `${message}: requests that name it are refused` };
  const remedy = models.server === undefined ? `hearth pull ${name}` : `pull it on the server at ${models.server}`;
  const help = `its runs wait until it is, a day at most (${remedy})`;
  return { id: "model-missing", severity: "error", message: `${message}: ${help}` };
}

function modelsNamed(snapshot: GatewaySnapshot): Named[] {
  const { defaults, list } = snapshot.agents;
  const run = (path: Path, reference: string | undefined): Named[] =>
    reference ? [{ path, reference, isRun: true }] : [];
  const { heartbeat } = defaults;
  return [
    ...run(["agents", "defaults", "model"], defaults.model),
    ...list.flatMap(({ model }, i) => run(["agents", "list", i, "model"], model)),
    ...run(["agents", "defaults", "heartbeat", "model"], heartbeat.model),
    ...makeMappings(snapshot).all.flatMap((mapping, i) =>
      mapping.config.action === "agent" ? run([...pathOf(mapping, i), "model"], ownModelOf(mapping.config)) : [],
    ),
    ...Object.keys(defaults.models).map((name): Named => {
      return { path: ["agents", "defaults", "models", name], reference: name, isRun: false };
    }),
  ];
}
