"""The two sides of the comparison: stages of two versions, each deployed by its own code."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.versions import batches, holding
from benchmarks.shared.stage import Stage
from signalbox.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class Side:
    """A version by its folder, with a running stage."""

    name: str
    folder: Path
    stage: Stage


@contextmanager
def side(name: str, folder: Path, *, port: int) -> Iterator[Side]:
    """Run a stage of the version in a folder, which has its virtual environment."""
    with _process(folder, Path(holding.__file__), str(port)) as process:
        assert process.stdout is not None
        described = next((line for line in process.stdout if line.startswith("{")), "")
        if not described:
            raise UnavailableError(f"the stage of {name} in {folder} did not start")
        yield Side(name, folder, Stage(json.loads(described)))


@contextmanager
def batch_runner(one: Side) -> Iterator["Runner"]:
    """Run the function `route` of a side's version in a process of its own, on the side's stage."""
    variables = _variables(one.stage, batches.HANDLER)
    with _process(one.folder, Path(batches.__file__), **variables) as process:
        yield Runner(process)


def _variables(stage: Stage, handler: str) -> dict[str, str]:
    """Return the environment of a deployed function, with the stage's endpoint and an administrator's credentials."""
    client = stage.deployment.session().client("lambda")
    pages = client.get_paginator("list_functions").paginate()
    (name,) = (one["FunctionName"] for page in pages for one in page["Functions"] if one["Handler"] == handler)
    variables = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    keys = stage.local["admin_credentials"]
    return {
        **variables,
        "AWS_ENDPOINT_URL": stage.local["endpoint_url"],
        "AWS_DEFAULT_REGION": stage.local["region"],
        "AWS_ACCESS_KEY_ID": keys["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": keys["secret_access_key"],
        "POWERTOOLS_METRICS_DISABLED": "true",
    }


@dataclass(frozen=True, slots=True)
class Runner:
    """A process that routes batches when it is asked to."""

    process: "subprocess.Popen[str]"

    def run(self, **request: object) -> list[dict[str, float]]:
        """Route batches; return the milliseconds of each until its steps were over."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("["):
                found: list[dict[str, float]] = json.loads(line)
                return found
        raise UnavailableError("the process that routes batches has ended")


@contextmanager
def _process(folder: Path, script: Path, *arguments: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
    python = folder / ".venv" / "bin" / "python"
    environment = {**os.environ, **variables, "PYTHONPATH": str(folder)}
    with subprocess.Popen(
        [str(python), str(script), *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait()
