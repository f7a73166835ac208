/** The Kubernetes manifests and the chart: valid against their schemas, and consistent with this program. */
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { HTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor";
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { StatefulSet } from "kubernetes-models/apps/v1/StatefulSet";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import { Ingress } from "kubernetes-models/networking.k8s.io/v1/Ingress";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { ConfigMap } from "kubernetes-models/v1/ConfigMap";
import { Service } from "kubernetes-models/v1/Service";
import { readConfig } from "../../src/base/config/config.ts";
import { readDocument } from "../../src/base/config/document.ts";
import { makeIsOwnHost } from "../../src/server/http/hosts.ts";
import { makeSnapshot } from "../../src/gateway/operate/snapshot.ts";
import { makeHarness, type Harness } from "../server/harness.ts";
import { tempFolder } from "../library/fixture.ts";
import { VERSION } from "../../src/base/version.ts";
import { chart, ownValues, renderChart, templates } from "./helm.ts";

const ROOT = join(import.meta.dir, "../..");
const FOLDER = join(ROOT, "packaging/kubernetes");
const files = readdirSync(FOLDER).filter((file) => file !== "kustomization.yaml");
const read = (file: string): any[] => [Bun.YAML.parse(readFileSync(join(FOLDER, file), "utf8"))].flat();
/** Everything that the chart can make. */
const EVERYTHING = {
  image: { tag: "1.2.3", pullSecrets: [{ name: "registry" }] },
  config: { hooks: { path: "/in" }, agents: { defaults: { model: 'quoted "name": {{ x }}' } } },
  gateway: {
    env: [{ name: "HEARTH_DEBUG", value: "true" }],
    podLabels: { team: "a" },
    autoscaling: { enabled: true },
    service: { type: "LoadBalancer", port: 80, annotations: { "example.org/internal": "true" } },
  },
  models: {
    gpu: { count: 2, runtimeClassName: "nvidia" },
    service: { port: 8080 },
    storage: { className: "fast" },
    podLabels: { "llm-d.ai/model": "m" },
    tolerations: [{ key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" }],
  },
  ingress: { enabled: true, className: "nginx", tlsSecret: "hooks-tls" },
  httpRoute: { enabled: true, parentRefs: [{ name: "gateway" }], hostnames: ["hooks.example.org"] },
  monitoring: {
    enabled: true,
    labels: { release: "prometheus" },
    authorization: { credentials: { name: "k", key: "v" } },
  },
};
const rendered = (values: object, release?: string): any[] =>
  renderChart({ ...values }, release).map((made) => made.object);
const SETS: Readonly<Record<string, any[]>> = {
  manifests: files.flatMap(read),
  chart: rendered({}),
  "chart with everything": rendered(EVERYTHING, "pool-2"),
};
const workloadsOf = (manifests: readonly any[]): any[] =>
  manifests.filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet");
const containerOf = ({ spec }: any): any => spec.template.spec.containers[0];
const envOf = (workload: any): Record<string, string> =>
  Object.fromEntries(containerOf(workload).env.map(({ name, value }: any) => [name, value]));

/** True if a workload without keys accepts a Host. */
function knows(workload: any, host: string): boolean {
  const { HEARTH_CONFIG: _, ...env } = envOf(workload);
  const config = readConfig({ env, flags: {}, home });
  return makeIsOwnHost({ hostname: config.host.hostname, hosts: config.hosts })(host);
}

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
  "autoscaling/v2 HorizontalPodAutoscaler": HorizontalPodAutoscaler,
  "networking.k8s.io/v1 Ingress": Ingress,
  "gateway.networking.k8s.io/v1 HTTPRoute": HTTPRoute,
  "monitoring.coreos.com/v1 ServiceMonitor": ServiceMonitor,
};

for (const [set, manifests] of Object.entries(SETS))
  for (const manifest of manifests) {
    const { apiVersion, kind, metadata } = manifest;
    test(`${set}: ${kind} ${metadata.name} is valid`, () => {
      const Kind = KINDS[`${apiVersion} ${kind}`];
      expect(Kind).toBeDefined();
      new Kind!(manifest).validate();
      // Proves that it validates
      expect(() => new Kind!({ ...manifest, metadata: { ...metadata, labels: 5 } }).validate()).toThrow();
    });
  }

/**
 * Fields that the schemas miss: the types of their package name every field, and an object literal may have no other.
 */
function unknownFields(manifests: readonly any[]): string {
  const modules: Readonly<Record<string, string>> = {
    "gateway.networking.k8s.io": "@kubernetes-models/gateway-api/gateway.networking.k8s.io",
    "monitoring.coreos.com": "@kubernetes-models/prometheus-operator/monitoring.coreos.com",
  };
  const lines = manifests.map((manifest, i) => {
    const { apiVersion, kind } = manifest;
    const [group] = apiVersion.split("/");
    const from = `${modules[group] ?? `kubernetes-models/${group}`}${apiVersion.slice(group.length)}/${kind}`;
    return `import type { I${kind} as T${i} } from "${from}";\nexport const m${i}: T${i} = ${JSON.stringify(manifest)};\n`;
  });
  const folder = join(home, "typed");
  mkdirSync(folder, { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "manifests.ts"), lines.join(""));
  const flags = ["--noEmit", "--strict", "--module", "preserve", "--skipLibCheck", "--ignoreConfig"];
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const { stdout } = Bun.spawnSync([process.execPath, tsc, ...flags, "manifests.ts"], { cwd: folder });
  rmSync(folder, { recursive: true });
  return stdout.toString();
}

test("no manifest has a field that Kubernetes does not know", () => {
  const all = Object.values(SETS).flat();
  expect(unknownFields(all)).toBe("");
  const deployment = all.find(({ kind }) => kind === "Deployment");
  expect(unknownFields([{ ...deployment, spec: { ...deployment.spec, strategyy: {} } }])).toContain('"strategyy"');
}, 120_000);

test("the kustomization lists every file", () => {
  expect(read("kustomization.yaml")[0].resources.toSorted()).toEqual(files.toSorted());
});

for (const [set, manifests] of Object.entries(SETS)) {
  const workloads = workloadsOf(manifests);

  test(`${set}: probes use an existing route and port, and services and budgets select their servers`, () => {
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
      expect(workload.spec.template.metadata.labels).toMatchObject(workload.spec.selector.matchLabels);
      expect(container.securityContext.readOnlyRootFilesystem).toBe(true);
      expect(workload.spec.template.spec.securityContext.runAsNonRoot).toBe(true);
    }
    const selectors = workloads.map(({ spec }) => spec.selector.matchLabels);
    const portsOf = (selector: object): string[] => {
      const found = workloads.find(({ spec }) => Bun.deepEquals(spec.selector.matchLabels, selector));
      return containerOf(found).ports.map(({ name }: any) => name);
    };
    for (const { kind, spec } of manifests) {
      if (kind === "Service") {
        expect(selectors).toContainEqual(spec.selector);
        for (const { targetPort } of spec.ports) expect(portsOf(spec.selector)).toContain(targetPort);
      }
      if (kind === "PodDisruptionBudget") expect(selectors).toContainEqual(spec.selector.matchLabels);
    }
  });

  test(`${set}: every setting exists, and the time to stop is longer than the drain and the grace`, () => {
    const settings = readFileSync(join(ROOT, "docs/settings.md"), "utf8");
    for (const workload of workloads) {
      const { HEARTH_CONFIG: _, ...env } = envOf(workload);
      const ours = Object.keys(env).filter((name) => name.startsWith("HEARTH_"));
      expect(ours.filter((name) => !settings.includes(`\`${name}\``))).toEqual([]);
      const config = readConfig({ env, flags: {}, home });
      const endsMs = config.drainDelayMs + config.shutdownGraceMs;
      expect(endsMs).toBeGreaterThan(10_000);
      expect(workload.spec.template.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(endsMs + 15_000);
    }
  });

  test(`${set}: the configuration is valid and names the models' service`, async () => {
    const { data, metadata } = manifests.find(({ kind }) => kind === "ConfigMap");
    const path = join(home, "hearth.json5");
    await Bun.write(path, data["hearth.json5"]);
    const env = {
      HEARTH_DATABASE_URL: "postgres://hearth@db/hearth",
      HEARTH_HOOKS_TOKEN: "a-hook-token-of-32-characters-xx",
      HEARTH_GATEWAY_TOKEN: "another-token-of-32-characters-x",
    };
    const snapshot = makeSnapshot(readDocument(path, env), { folder: home, apiKeys: [] });
    expect(snapshot.database.url).toBe(env.HEARTH_DATABASE_URL);
    const gateway = workloads.find(({ kind }) => kind === "Deployment");
    expect(gateway.spec.template.spec.volumes).toContainEqual({ name: "config", configMap: { name: metadata.name } });
    const { HEARTH_MODELS_URL: modelsUrl } = envOf(gateway);
    const read = readConfig({
      env: { ...env, ...(modelsUrl && { HEARTH_MODELS_URL: modelsUrl }) },
      flags: { config: path },
      home,
    });
    const { hostname, port } = new URL(read.modelsUrl!);
    const service = manifests.find(({ kind, metadata }) => kind === "Service" && metadata.name === hostname);
    const models = workloads.find(({ kind }) => kind === "StatefulSet");
    expect(knows(models, hostname)).toBe(true);
    expect(service.spec.ports[0].port).toBe(Number(port));
    const hooks = containerOf(gateway).ports.find(({ name }: any) => name === "hooks");
    if (hooks) expect(snapshot.hooks.listen).toBe(`0.0.0.0:${hooks.containerPort}`);
  });
}

test.each(Object.entries(SETS))(
  "%s: servers accept the names and addresses of their services and pods, and refuse others",
  (set, manifests) => {
    for (const workload of workloadsOf(manifests)) {
      const { name } = workload.metadata;
      const cluster = [`${name}:11434`, `${name}.team.svc`, `${name}.team.svc.cluster.local:80`];
      const pods = workload.kind === "StatefulSet" ? [`${name}-0.${name}-each`] : [];
      const namespaced = set === "manifests" ? [] : [`${name}.default`];
      for (const host of [...cluster, ...pods, ...namespaced, "10.1.2.3:11434", "[fd00::7]:11434", "localhost:11434"]) {
        expect([host, knows(workload, host)]).toEqual([host, true]);
      }
      for (const host of ["evil.example", `${name}.evil.example`, "svc", "evil"]) {
        expect([host, knows(workload, host)]).toEqual([host, false]);
      }
    }
  },
);

test("the chart: servers accept the configured names of proxies", () => {
  for (const workload of workloadsOf(rendered({ hosts: ["models.example.org", "*.team.internal"] }))) {
    for (const host of ["models.example.org", "a.team.internal"]) expect(knows(workload, host)).toBe(true);
  }
});

test("manifests and chart have the version of package.json", () => {
  const [{ images }] = read("kustomization.yaml");
  expect([images[0].newTag, chart["version"], chart["appVersion"]]).toEqual([VERSION, VERSION, VERSION]);
});

test("the chart: every value appears in its place", () => {
  const made = SETS["chart with everything"]!;
  const find = (kind: string, name: string) => made.find((each) => each.kind === kind && each.metadata.name === name);
  const [gateway, models] = [find("Deployment", "pool-2-gateway"), find("StatefulSet", "pool-2-models")];
  expect(containerOf(gateway).image).toBe("registry.internal/hearth:1.2.3");
  expect(gateway.spec.template.spec.imagePullSecrets).toEqual([{ name: "registry" }]);
  expect(envOf(gateway)["HEARTH_DEBUG"]).toBe("true");
  expect(gateway.spec.replicas).toBeUndefined();
  expect(find("HorizontalPodAutoscaler", "pool-2-gateway").spec.scaleTargetRef.name).toBe("pool-2-gateway");
  expect(gateway.spec.template.metadata.labels["team"]).toBe("a");
  expect(containerOf(models).resources.limits).toEqual({ "nvidia.com/gpu": 2, memory: "32Gi" });
  expect(models.spec.template.spec).toMatchObject({
    runtimeClassName: "nvidia",
    tolerations: EVERYTHING.models.tolerations,
  });
  expect(models.spec.template.metadata.labels["llm-d.ai/model"]).toBe("m");
  expect(models.spec.volumeClaimTemplates[0].spec.storageClassName).toBe("fast");
  expect(find("Service", "pool-2-gateway").spec.type).toBe("LoadBalancer");
  const [rule] = find("Ingress", "pool-2-hooks").spec.rules;
  expect(rule.http.paths).toMatchObject([{ path: "/in", backend: { service: { port: { name: "hooks" } } } }]);
  expect(find("HTTPRoute", "pool-2-hooks").spec.rules[0].backendRefs).toEqual([
    { name: "pool-2-gateway", port: 11435 },
  ]);
  const { metadata, spec } = find("ServiceMonitor", "pool-2");
  expect(metadata.labels["release"]).toBe("prometheus");
  expect(spec.endpoints[0]).toMatchObject({ port: "http", authorization: EVERYTHING.monitoring.authorization });
  const config = JSON.parse(find("ConfigMap", "pool-2").data["hearth.json5"]);
  expect(config.agents).toEqual(EVERYTHING.config.agents);
});

test("the chart: optional parts are off by default, and a gateway without models runs its own or uses modelsUrl", () => {
  const budgets = ["PodDisruptionBudget", "PodDisruptionBudget"];
  const expected = ["ConfigMap", "Deployment", ...budgets, "Service", "Service", "Service", "StatefulSet"];
  expect(SETS["chart"]!.map(({ kind }) => kind).toSorted()).toEqual(expected);
  const urlOf = (gateway: object): string | undefined => {
    const made = rendered({ models: { enabled: false }, gateway });
    expect(workloadsOf(made)).toHaveLength(1);
    return envOf(workloadsOf(made)[0])["HEARTH_MODELS_URL"];
  };
  expect([urlOf({}), urlOf({ modelsUrl: "http://router:8080" })]).toEqual([undefined, "http://router:8080"]);
});

test("the chart: templates use only existing values, and every value is used", () => {
  const asked = new Set([...templates.values()].flatMap((text) => text.match(/(?<=\.Values\.)[\w.]+/g) ?? []));
  const at = (path: string): unknown => path.split(".").reduce<any>((value, key) => value?.[key], ownValues);
  expect([...asked].filter((path) => at(path) === undefined)).toEqual(["config.hooks.path"]);
  const all = [...templates.values()].join("\n");
  const names = Object.entries(ownValues).flatMap(([name, value]) =>
    name === "config" || typeof value !== "object" ? [name] : Object.keys(value),
  );
  expect(names.filter((name) => !new RegExp(`\\.${name}\\b`).test(all))).toEqual([]);
});

for (const [wrong, values] of Object.entries({
  "a name that is not there": { gateway: { replica: 3 } },
  "a text for a number": { models: { replicas: "three" } },
  "a duration without a unit": { gateway: { drainDelay: "5" } },
  "hooks where their service does not look": { config: { hooks: { listen: "127.0.0.1:1" } } },
  "no database": { config: { database: null } },
}))
  test(`the chart refuses ${wrong}`, () => {
    expect(() => renderChart(values)).toThrow(/^values: data/);
  });
