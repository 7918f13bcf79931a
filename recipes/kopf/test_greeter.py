"""The operator runs in the test process, against a control plane of its own."""

import pathlib

import kopf.testing
import pytest
import yaml
from kubernetes import client as k8s
from kubernetes import watch

HERE = pathlib.Path(__file__).parent
GREETINGS = ("example.com", "v1", "default", "greetings")
PATIENCE_SECONDS = 30


@pytest.fixture
def operator(client, kubeconfig, monkeypatch):
    """Installs the definition and runs the operator until the test ends."""
    definition = yaml.safe_load((HERE / "definition.yaml").read_text())
    k8s.ApiextensionsV1Api(client).create_custom_resource_definition(definition)
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    arguments = ["run", "--standalone", "--namespace=default", str(HERE / "greeter.py")]
    with kopf.testing.KopfRunner(arguments, timeout=PATIENCE_SECONDS) as runner:
        yield runner
    assert runner.exception is None and runner.exit_code == 0, runner.output


def greeting(name):
    return {
        "apiVersion": "example.com/v1",
        "kind": "Greeting",
        "metadata": {"name": "hello"},
        "spec": {"name": name},
    }


def wait_for(client, condition):
    """Lists and watches until the text of the greeting, or None without its ConfigMap, satisfies the condition."""
    list_maps = k8s.CoreV1Api(client).list_namespaced_config_map
    place = {"namespace": "default", "field_selector": "metadata.name=hello"}
    listed = list_maps(**place)
    if condition(listed.items[0].data["text"] if listed.items else None):
        return
    version = listed.metadata.resource_version
    for event in watch.Watch().stream(
        list_maps, resource_version=version, timeout_seconds=PATIENCE_SECONDS, **place
    ):
        if condition(None if event["type"] == "DELETED" else event["object"].data["text"]):
            return
    raise TimeoutError(f"not within {PATIENCE_SECONDS} s")


def test_the_text_follows_the_greeting(client, operator):
    objects = k8s.CustomObjectsApi(client)
    objects.create_namespaced_custom_object(*GREETINGS, greeting("Ada"))
    wait_for(client, lambda text: text == "Hello, Ada!")
    objects.patch_namespaced_custom_object(*GREETINGS, "hello", {"spec": {"name": "Grace"}})
    wait_for(client, lambda text: text == "Hello, Grace!")


def test_the_text_goes_with_the_greeting(client, operator):
    objects = k8s.CustomObjectsApi(client)
    objects.create_namespaced_custom_object(*GREETINGS, greeting("Ada"))
    wait_for(client, lambda text: text == "Hello, Ada!")
    objects.delete_namespaced_custom_object(*GREETINGS, "hello")
    wait_for(client, lambda text: text is None)
