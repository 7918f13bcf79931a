"""Fixtures: every test gets a control plane of its own."""

import os
import subprocess

import kubernetes
import pytest

SETPOINT = os.environ.get("SETPOINT", "setpoint")


@pytest.fixture
def kubeconfig(tmp_path):
    """Starts a control plane with control loops, scheduler and one simulated node; ends it after the test."""
    command = [SETPOINT, "up", "--ephemeral", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield ready(process)
        finally:
            process.terminate()


def ready(process):
    """Waits for the line `ready URL kubeconfig=PATH`, and returns the path."""
    for line in process.stdout:
        if line.startswith("ready "):
            return line.strip().split("kubeconfig=", 1)[1]
    raise RuntimeError("setpoint ended before it was ready")


@pytest.fixture
def client(kubeconfig):
    """An API client of the control plane."""
    with kubernetes.config.new_client_from_config(kubeconfig) as client:
        yield client
