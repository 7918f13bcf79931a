"""The operator under test: writes a ConfigMap with a text for every Greeting."""

import os

import kopf
import kubernetes


@kopf.on.startup()
def configure(settings, **_):
    # By name: the client library reads the variable only when it is imported.
    kubernetes.config.load_kube_config(os.environ.get("KUBECONFIG"))
    settings.posting.enabled = False


@kopf.on.login()
def login(**arguments):
    return kopf.login_with_kubeconfig(**arguments)


@kopf.on.create("example.com", "v1", "greetings")
@kopf.on.update("example.com", "v1", "greetings", field="spec")
def write(spec, name, namespace, body, **_):
    text = f"Hello, {spec['name']}!"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}
    kopf.adopt(config_map, owner=body)
    client = kubernetes.dynamic.DynamicClient(kubernetes.client.ApiClient())
    config_maps = client.resources.get(api_version="v1", kind="ConfigMap")
    config_maps.server_side_apply(config_map, namespace=namespace, field_manager="greeter")
    return {"text": text}
