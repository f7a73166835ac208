/** The manifests for Kubernetes: as its own schemas want them, and true about this program. */
import { readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { StatefulSet } from "kubernetes-models/apps/v1/StatefulSet";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { ConfigMap } from "kubernetes-models/v1/ConfigMap";
import { Service } from "kubernetes-models/v1/Service";
import { readConfig } from "../../src/config.ts";
import { readDocument } from "../../src/config/document.ts";
import { makeSnapshot } from "../../src/gateway/snapshot.ts";
import { makeHarness, type Harness } from "../server/harness.ts";
import { tempFolder } from "../store/fixture.ts";

const FOLDER = join(import.meta.dir, "../../packaging/kubernetes");
const files = readdirSync(FOLDER).filter((file) => file !== "kustomization.yaml");
const read = (file: string): any[] => [Bun.YAML.parse(readFileSync(join(FOLDER, file), "utf8"))].flat();
const manifests = files.flatMap(read);
const workloads = manifests.filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet");
const containerOf = ({ spec }: any): any => spec.template.spec.containers[0];
const envOf = (workload: any): Record<string, string> =>
  Object.fromEntries(containerOf(workload).env.map(({ name, value }: any) => [name, value]));

let harness: Harness;
let home: string;
beforeAll(async () => {
  harness = await makeHarness();
  home = await tempFolder();
});
afterAll(async () => {
  await harness.close();
  await rm(home, { recursive: true });
});

const KINDS: Readonly<Record<string, new (data: any) => { validate(): void }>> = {
  "v1 ConfigMap": ConfigMap,
  "v1 Service": Service,
  "apps/v1 Deployment": Deployment,
  "apps/v1 StatefulSet": StatefulSet,
  "policy/v1 PodDisruptionBudget": PodDisruptionBudget,
};

for (const manifest of manifests) {
  const { apiVersion, kind, metadata } = manifest;
  test(`${kind} ${metadata.name} is valid`, () => {
    const Kind = KINDS[`${apiVersion} ${kind}`];
    expect(Kind).toBeDefined();
    new Kind!(manifest).validate();
    expect(() => new Kind!({ ...manifest, metadata: { ...metadata, labels: 5 } }).validate()).toThrow(); // it looks
  });
}

test("the kustomization has every file", () => {
  expect(read("kustomization.yaml")[0].resources.toSorted()).toEqual(files.toSorted());
});

test("probes ask what is answered, at a port that is there; services and budgets find their servers", () => {
  expect(workloads).toHaveLength(2);
  for (const workload of workloads) {
    const container = containerOf(workload);
    const paths = harness.app.routes.map(({ path }) => path);
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      const { path, port } = container[probe].httpGet;
      expect(paths).toContain(path);
      expect(container.ports.map(({ name }: any) => name)).toContain(port);
    }
    expect(Number(/:(\d+)$/.exec(envOf(workload)["HEARTH_HOST"]!)![1])).toBe(container.ports[0].containerPort);
    expect(workload.spec.selector.matchLabels).toEqual(workload.spec.template.metadata.labels);
  }
  const labels = workloads.map(({ spec }) => spec.template.metadata.labels);
  for (const { kind, spec } of manifests) {
    if (kind === "Service") expect(labels).toContainEqual(spec.selector);
    if (kind === "PodDisruptionBudget") expect(labels).toContainEqual(spec.selector.matchLabels);
  }
});

test("settings are read by this program, and a server has ended before it is killed", () => {
  for (const workload of workloads) {
    const { HEARTH_CONFIG: _, ...env } = envOf(workload);
    const known = readFileSync(join(FOLDER, "../../docs/settings.md"), "utf8");
    expect(Object.keys(env).filter((name) => name !== "HOME" && !known.includes(`\`${name}\``))).toEqual([]);
    const config = readConfig({ env, flags: {}, home });
    const endsMs = config.drainDelayMs + config.shutdownGraceMs;
    expect(endsMs).toBeGreaterThan(10_000);
    expect(workload.spec.template.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(endsMs + 15_000);
  }
});

test("the configuration is one, and names the models' service", async () => {
  const { data } = manifests.find(({ kind }) => kind === "ConfigMap");
  const path = join(home, "hearth.json5");
  await Bun.write(path, data["hearth.json5"]);
  const env = {
    HEARTH_DATABASE_URL: "postgres://hearth@db/hearth",
    HEARTH_HOOKS_TOKEN: "a-hook-token-of-32-characters-xx",
    HEARTH_GATEWAY_TOKEN: "another-token-of-32-characters-x",
  };
  const snapshot = makeSnapshot(readDocument(path, env), { folder: home, apiKeys: [] });
  expect(snapshot.database.url).toBe(env.HEARTH_DATABASE_URL);
  const { modelsUrl } = readConfig({ env, flags: { config: path }, home });
  const services = manifests.filter(({ kind }) => kind === "Service").map(({ metadata }) => metadata.name);
  expect(services).toContain(new URL(modelsUrl!).hostname);
});
