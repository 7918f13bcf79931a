"""What a control plane does: it runs workloads, collects garbage and validates custom resources."""

import pytest
from kubernetes import client as k8s
from kubernetes import watch

PATIENCE_SECONDS = 30


def until(list_objects, condition, **arguments):
    """Lists and watches until the objects, by name, satisfy the condition; returns them."""
    listed = list_objects(**arguments)
    found = {item.metadata.name: item for item in listed.items}
    if condition(found):
        return found
    arguments["resource_version"] = listed.metadata.resource_version
    for event in watch.Watch().stream(list_objects, timeout_seconds=PATIENCE_SECONDS, **arguments):
        name = event["object"].metadata.name
        if event["type"] == "DELETED":
            found.pop(name, None)
        else:
            found[name] = event["object"]
        if condition(found):
            return found
    raise TimeoutError(f"not within {PATIENCE_SECONDS} s: {sorted(found)}")


def deployment(replicas):
    labels = {"app": "web"}
    container = k8s.V1Container(name="web", image="nginx")
    template = k8s.V1PodTemplateSpec(
        metadata=k8s.V1ObjectMeta(labels=labels), spec=k8s.V1PodSpec(containers=[container])
    )
    return k8s.V1Deployment(
        metadata=k8s.V1ObjectMeta(name="web"),
        spec=k8s.V1DeploymentSpec(
            replicas=replicas, selector=k8s.V1LabelSelector(match_labels=labels), template=template
        ),
    )


def test_a_deployment_runs_its_pods(client):
    k8s.AppsV1Api(client).create_namespaced_deployment("default", deployment(replicas=3))
    pods = until(
        k8s.CoreV1Api(client).list_namespaced_pod,
        lambda pods: sum(pod.status.phase == "Running" for pod in pods.values()) == 3,
        namespace="default",
    )
    assert all(pod.spec.node_name for pod in pods.values())


def test_deleting_a_deployment_deletes_what_it_owns(client):
    apps, core = k8s.AppsV1Api(client), k8s.CoreV1Api(client)
    apps.create_namespaced_deployment("default", deployment(replicas=2))
    until(core.list_namespaced_pod, lambda pods: len(pods) == 2, namespace="default")
    apps.delete_namespaced_deployment("web", "default", propagation_policy="Foreground")
    until(apps.list_namespaced_deployment, lambda found: not found, namespace="default")
    assert not apps.list_namespaced_replica_set("default").items
    assert not core.list_namespaced_pod("default").items


def definition():
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 3}}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shirts.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "shirts", "singular": "shirt", "kind": "Shirt"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def test_custom_resources_are_validated(client):
    k8s.ApiextensionsV1Api(client).create_custom_resource_definition(definition())
    shirts = k8s.CustomObjectsApi(client)

    def create(size):
        shirt = {
            "apiVersion": "example.com/v1",
            "kind": "Shirt",
            "metadata": {"generateName": "shirt-"},
            "spec": {"size": size},
        }
        return shirts.create_namespaced_custom_object("example.com", "v1", "default", "shirts", shirt)

    assert create(2)["spec"]["size"] == 2
    with pytest.raises(k8s.ApiException, match="less than or equal to 3") as refused:
        create(4)
    assert refused.value.status == 422


def test_each_test_has_a_control_plane_of_its_own(client):
    assert not k8s.AppsV1Api(client).list_deployment_for_all_namespaces().items
