// What a control plane does: it runs workloads, collects garbage and validates custom resources.

import {
  ApiextensionsV1Api,
  AppsV1Api,
  CoreV1Api,
  CustomObjectsApi,
  makeInformer,
  type KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  type V1CustomResourceDefinition,
  type V1Deployment,
  type V1Pod,
} from "@kubernetes/client-node";
import assert from "node:assert/strict";
import { test } from "node:test";
import { withControlPlane } from "./control-plane.js";

const PATIENCE_MS = 30_000;

/** Follows the objects at a path with an informer, until they satisfy the condition. */
async function until<T extends KubernetesObject>(
  config: KubeConfig,
  path: string,
  list: () => Promise<KubernetesListObject<T>>,
  condition: (objects: T[]) => boolean,
): Promise<T[]> {
  const informer = makeInformer<T>(config, path, list);
  const found = new Map<string, T>();
  try {
    return await new Promise<T[]>((resolve, reject) => {
      const check = () => condition([...found.values()]) && resolve([...found.values()]);
      const put = (object: T) => (found.set(object.metadata!.name!, object), check());
      informer.on("add", put);
      informer.on("update", put);
      informer.on("delete", (object) => (found.delete(object.metadata!.name!), check()));
      informer.on("error", reject);
      setTimeout(() => reject(new Error(`not within ${PATIENCE_MS} ms at ${path}`)), PATIENCE_MS).unref();
      informer.start().then(check, reject);
    });
  } finally {
    await informer.stop();
  }
}

function deployment(replicas: number): V1Deployment {
  const labels = { app: "web" };
  return {
    metadata: { name: "web" },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "nginx" }] } },
    },
  };
}

function pods(config: KubeConfig, condition: (pods: V1Pod[]) => boolean): Promise<V1Pod[]> {
  const core = config.makeApiClient(CoreV1Api);
  const namespace = "default";
  return until(config, "/api/v1/namespaces/default/pods", () => core.listNamespacedPod({ namespace }), condition);
}

test(
  "a deployment runs its pods",
  withControlPlane(async (config) => {
    const apps = config.makeApiClient(AppsV1Api);
    await apps.createNamespacedDeployment({ namespace: "default", body: deployment(3) });
    const isRunning = (pod: V1Pod) => pod.status?.phase === "Running";
    const found = await pods(config, (pods) => pods.filter(isRunning).length === 3);
    assert.ok(found.every((pod) => pod.spec?.nodeName));
  }),
);

test(
  "deleting a deployment deletes what it owns",
  withControlPlane(async (config) => {
    const apps = config.makeApiClient(AppsV1Api);
    await apps.createNamespacedDeployment({ namespace: "default", body: deployment(2) });
    await pods(config, (pods) => pods.length === 2);
    await apps.deleteNamespacedDeployment({ namespace: "default", name: "web" });
    await pods(config, (pods) => pods.length === 0);
    assert.deepEqual((await apps.listNamespacedReplicaSet({ namespace: "default" })).items, []);
  }),
);

const definition: V1CustomResourceDefinition = {
  metadata: { name: "shirts.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { plural: "shirts", singular: "shirt", kind: "Shirt" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: { spec: { type: "object", properties: { size: { type: "integer", maximum: 3 } } } },
          },
        },
      },
    ],
  },
};

test(
  "custom resources are validated",
  withControlPlane(async (config) => {
    await config.makeApiClient(ApiextensionsV1Api).createCustomResourceDefinition({ body: definition });
    const shirts = config.makeApiClient(CustomObjectsApi);
    const create = (size: number) =>
      shirts.createNamespacedCustomObject({
        group: "example.com",
        version: "v1",
        namespace: "default",
        plural: "shirts",
        body: {
          apiVersion: "example.com/v1",
          kind: "Shirt",
          metadata: { generateName: "shirt-" },
          spec: { size },
        },
      });
    assert.equal((await create(2)).spec.size, 2);
    await assert.rejects(create(4), { code: 422 });
  }),
);
