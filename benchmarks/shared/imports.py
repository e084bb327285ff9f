"""The import of a function in a new interpreter that has only what is deployed, and Lambda's runtime."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Prints the processor milliseconds of the imports of the SDK, which Lambda's runtime has, and of everything else that
# the function imports, and of the creation of AWS clients; and whether it uses all of the SDK or botocore alone.
PROGRAM = """
import json, os, sys, time
code, layer, runtime, name, sdk, *services = sys.argv[1:]
sys.path[:0] = [code, layer, runtime]
os.environ.update(AWS_DEFAULT_REGION="us-east-1", AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x")
marks = [time.process_time()]
__import__(sdk)
marks.append(time.process_time())
__import__("lambdas." + name)
marks.append(time.process_time())
has_boto3 = "boto3" in sys.modules
import botocore.session
session = botocore.session.get_session()
clients = [session.create_client(service) for service in services]
marks.append(time.process_time())
print(json.dumps([*((b - a) * 1000 for a, b in zip(marks, marks[1:])), has_boto3]))
"""
BOTOCORE, BOTO3 = "botocore.session", "boto3"


@dataclass(frozen=True, slots=True)
class ImportTimes:
    """Processor milliseconds of a start: of the SDK's import, of the rest of the function's, and of its clients."""

    sdk: float
    rest: float
    clients: float
    has_boto3: bool


def import_function(
    name: str, *, code: Path, layer: Path, runtime: Path, sdk: str = BOTOCORE, services: Sequence[str] = ()
) -> ImportTimes:
    """Import a function, such as `rendezvous.offer`, from the folders of its code, its layer and the runtime."""
    # -I and -S exclude the environment and all installed packages; -B writes no bytecode.
    program = [sys.executable, "-I", "-S", "-B", "-c", PROGRAM]
    command = [*program, str(code), str(layer), str(runtime), name, sdk, *services]
    return ImportTimes(*json.loads(subprocess.run(command, capture_output=True, check=True).stdout))
