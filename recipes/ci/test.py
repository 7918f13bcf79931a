"""Checks the files for CI: they are YAML, each step is shell, and the steps that test a recipe do so here."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import yaml

HERE = pathlib.Path(__file__).parent
# The recipe whose folder is the project of the job, and a program that it needs.
JOBS = {"python": "python3", "go-envtest": "go"}


def github(document):
    """The scripts of each job, without the step that installs Setpoint."""
    for name, job in document["jobs"].items():
        scripts = [step["run"] for step in job["steps"] if "run" in step and step["name"] != "Install Setpoint"]
        yield name, scripts


def gitlab(document):
    for name, job in document.items():
        if isinstance(job, dict) and job.get("stage") == "test":
            yield name, ["\n".join(job["script"])]


def check_syntax(script):
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def run(folder, script, path):
    environment = dict(os.environ, PATH=path, PYTHONDONTWRITEBYTECODE="1", CGO_ENABLED="0")
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, check=True)


def main():
    every = {}
    for file, read in (("github-actions.yml", github), ("gitlab-ci.yml", gitlab)):
        jobs = dict(read(yaml.safe_load((HERE / file).read_text())))
        assert set(jobs) == set(JOBS), f"{file}: the jobs are {sorted(jobs)}"
        for name, scripts in jobs.items():
            for script in scripts:
                check_syntax(script)
            every.setdefault(name, []).append(("\n".join(scripts)).strip())
    with tempfile.TemporaryDirectory() as programs:
        # As a runner has them: our program and this Python on PATH.
        pathlib.Path(programs, "setpoint").symlink_to(shutil.which(os.environ.get("SETPOINT", "setpoint")))
        path = os.pathsep.join([programs, str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
        for name, scripts in every.items():
            assert len(set(scripts)) == 1, f"{name}: the two files differ: {scripts}"
            if shutil.which(JOBS[name]):
                run(HERE.parent / name, scripts[0], path)
            else:
                print(f"{name}: NOT RUN, there is no {JOBS[name]}")
    print("ci: ok")


main()
