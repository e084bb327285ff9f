"""Calls judged by IAM's rules, with a simulator that is not ours: @cloud-copilot/iam-simulate, on Node."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.local import tools
from tests.infrastructure.rendering import ACCOUNT, Policy
from tests.tiers import javascript

PROGRAM = Path(__file__).with_name("simulate.mjs")
OVER_TLS = {"aws:SecureTransport": "true"}
# The simulator knows no condition key with a variable after a colon. A key of the same calls and type replaces it.
STAND_IN = ("kms:EncryptionContext:aws:sqs:arn", "kms:RequestAlias")


@dataclass(frozen=True)
class Call:
    """A call of an AWS API: who makes it, the resource's ARN and policy, and the condition keys of the request."""

    principal: str
    policies: Sequence[Policy]
    action: str
    resource: str
    resource_policy: Policy | None = None
    context: Mapping[str, str] = field(default_factory=dict)

    def simulation(self) -> dict[str, object]:
        return {
            "request": {
                "principal": self.principal,
                "action": self.action,
                "resource": {"resource": self.resource, "accountId": ACCOUNT},
                "contextVariables": {**OVER_TLS, **self.context},
            },
            "identityPolicies": [{"name": str(n), "policy": policy} for n, policy in enumerate(self.policies)],
            "serviceControlPolicies": [],
            "resourceControlPolicies": [],
            **({"resourcePolicy": self.resource_policy} if self.resource_policy else {}),
        }


def allowed(calls: Iterable[Call]) -> list[bool]:
    """Return for each call whether IAM allows it; a call or policy that AWS does not have fails."""
    made = list(calls)
    command = [str(tools.node()), str(PROGRAM), str(javascript.modules())]
    given = json.dumps([call.simulation() for call in made], default=str).replace(*STAND_IN)
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, env={**os.environ})  # noqa: S603
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    faults = [(call.action, call.resource, one) for call, one in zip(made, results, strict=True) if one.get("errors")]
    assert not faults, faults[:3]
    return [one["outcome"] == "Allowed" for one in results]
