"""The Python package `kubernetes` against a running control plane: create, read, patch, watch, resume, 410, delete.

    python_client.py KUBECONFIG
"""
import sys

from kubernetes import client, config, watch


def refused(code, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except client.ApiException as error:
        assert error.status == code, (error.status, error.body)
        return
    raise AssertionError("expected a %d" % code)


config.load_kube_config(sys.argv[1])
core, apps = client.CoreV1Api(), client.AppsV1Api()

# Create, read, conflict.
made = core.create_namespaced_config_map("default", {"metadata": {"name": "one", "labels": {"app": "a"}}, "data": {"k": "1"}})
refused(409, core.create_namespaced_config_map, "default", {"metadata": {"name": "one"}})
refused(404, core.read_namespaced_config_map, "none", "default")
read = core.read_namespaced_config_map("one", "default")
assert (read.data, read.metadata.uid) == ({"k": "1"}, made.metadata.uid)
read.data["k"] = "2"
core.replace_namespaced_config_map("one", "default", read)
refused(409, core.replace_namespaced_config_map, "one", "default", read)

# Patch and list.
patched = core.patch_namespaced_config_map("one", "default", {"data": {"l": "3"}})
assert patched.data == {"k": "2", "l": "3"}
assert [it.metadata.name for it in core.list_namespaced_config_map("default", label_selector="app=a").items] == ["one"]
assert core.list_namespaced_config_map("default", field_selector="metadata.name=two").items == []

# Watch from a version, and resume from the last one seen.
seen = made.metadata.resource_version
events = []
for event in watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version=seen, timeout_seconds=1):
    events.append((event["type"], event["object"].data))
    seen = event["object"].metadata.resource_version
assert events == [("MODIFIED", {"k": "2"}), ("MODIFIED", {"k": "2", "l": "3"})], events
core.delete_namespaced_config_map("one", "default")
resumed = watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version=seen, timeout_seconds=1)
assert [event["type"] for event in resumed] == ["DELETED"]

# A workload with its defaults, its scale and its status.
apps.create_namespaced_deployment("default", {
    "metadata": {"name": "web"},
    "spec": {"selector": {"matchLabels": {"app": "web"}},
             "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}},
})
web = apps.read_namespaced_deployment("web", "default")
assert (web.spec.replicas, web.spec.strategy.type) == (1, "RollingUpdate")
apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 4}})
assert apps.read_namespaced_deployment_scale("web", "default").spec.replicas == 4
apps.patch_namespaced_deployment_status("web", "default", {"status": {"replicas": 4}})
web = apps.read_namespaced_deployment("web", "default")
assert (web.status.replicas, web.metadata.generation) == (4, 2), (web.status, web.metadata.generation)
refused(422, apps.patch_namespaced_deployment, "web", "default", {"spec": {"replicas": -1}})

# A version that is not kept any more: 410, after which a new list tells where to go on.
core.create_namespaced_config_map("default", {"metadata": {"name": "large"}})
for number in range(70):
    core.patch_namespaced_config_map("large", "default", {"data": {"k": str(number) + "x" * 1000000}})
refused(410, lambda: list(watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version=seen, timeout_seconds=5)))
latest = core.list_namespaced_config_map("default").metadata.resource_version
core.delete_namespaced_config_map("large", "default")
resumed = watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version=latest, timeout_seconds=1)
assert [event["type"] for event in resumed] == ["DELETED"]
print("ok")
