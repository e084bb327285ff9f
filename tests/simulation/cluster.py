"""A simulated Kubernetes cluster: an API server, and the controller that rolls workloads out."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from botocore.exceptions import BotoCoreError
from urllib3.exceptions import MaxRetryError, ReadTimeoutError

from signalbox.aws.splitting.kubernetes.api import PatchKind
from signalbox.aws.splitting.kubernetes.client import APPLY, ONCE
from tests.simulation import fields
from tests.simulation.calls import Calls
from tests.simulation.fields import MANAGED, Conflict, Document
from tests.simulation.kernel import Kernel
from tests.simulation.services import Answer, Refusal, Request

SERVICE, ATTEMPTS = "kubernetes", 3
WORKLOADS = ("deployments", "statefulsets")
# How long the steps of a rollout take: a pod starts, and one that is deleted ends its work.
STARTS, ENDS = (0.5, 8.0), (0.1, 15.0)


@dataclass
class SimulatedCluster:
    """The objects of a cluster by path; `started` is called with the path of each pod that runs."""

    kernel: Kernel
    started: Callable[[str], object] = lambda _: None
    objects: dict[str, Document] = field(default_factory=dict)
    versions: int = 0

    def __call__(self, operation: str, request: Request) -> Answer:
        path = request["Path"]
        if operation == "GET":
            return self._found(path, request["Query"])
        if operation == "DELETE":
            self.objects.pop(path, None)
            self.kernel.at(self.kernel.now, partial(self._roll_out, path))
            return _answer(200, {})
        document, old = request["Document"], self.objects.get(path)
        if operation == "POST":
            path = f"{path}/{document['metadata']['name']}"
            document = {**document, "metadata": {**document["metadata"], "namespace": path.split("/")[-3]}}
            return self._written(path, {}, lambda: self._updated({}, document, request))
        if old is None and request["Kind"] != APPLY:
            return _answer(404, {"reason": "NotFound"})
        return self._written(path, old or {}, lambda: self._patched(path, old or {}, request))

    def _found(self, path: str, query: dict[str, str]) -> Answer:
        if path in self.objects:
            return _answer(200, self.objects[path])
        items = [one for key, one in self.objects.items() if key.startswith(f"{path}/")]
        wanted = dict(part.split("=") for part in query.get("labelSelector", "").split(",") if part)
        items = [one for one in items if wanted.items() <= one["metadata"].get("labels", {}).items()]
        is_list = items or path.endswith("/pods")
        return _answer(200, {"items": items}) if is_list else _answer(404, {"reason": "NotFound"})

    # Writes.

    def _patched(self, path: str, old: Document, request: Request) -> Document:
        document, kind = request["Document"], request["Kind"]
        if kind == APPLY:
            version = document["metadata"].get("resourceVersion")
            if version and old and version != old["metadata"]["resourceVersion"]:
                raise Refusal("Conflict", "the object has been modified", status=409)
            named = {"apiVersion": document["apiVersion"], "kind": document["kind"]}
            names = {"name": path.rpartition("/")[2], "namespace": path.split("/")[-3]}
            if not old and "selector" not in document["spec"]:
                raise Refusal("Invalid", "spec.selector: Required value", status=422)
            begun = old or {**named, "metadata": names}
            manager, force = request["Query"]["fieldManager"], request["Query"].get("force") == "true"
            return fields.applied(begun, document, manager, now=self._time, force=force)
        if kind == PatchKind.JSON:
            return self._updated(old, fields.operated(old, document), request)
        return self._updated(old, fields.merged(old, document, by_name=kind == PatchKind.STRATEGIC), request)

    def _updated(self, old: Document, new: Document, request: Request) -> Document:
        version = new["metadata"].get("resourceVersion")
        if old and version != old["metadata"]["resourceVersion"]:
            raise Refusal("Conflict", "the object has been modified", status=409)
        for container in new.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
            if any(one.get("value") and "valueFrom" in one for one in container.get("env", ())):
                raise Refusal("Invalid", "valueFrom may not be specified when `value` is not empty", status=422)
        return fields.updated(old, new, request["Query"].get("fieldManager", "test"), now=self._time)

    def _written(self, path: str, old: Document, write: Callable[[], Document]) -> Answer:
        try:
            new = _compact(write())
        except Conflict as conflict:
            causes = [
                {"reason": "FieldManagerConflict", "message": f'conflict with "{manager}"', "field": "".join(place)}
                for manager, place in conflict.found
            ]
            return _answer(409, {"reason": "Conflict", "details": {"causes": causes}})
        except Refusal as refusal:
            return _answer(refusal.status, {"reason": refusal.code, "message": refusal.message})
        if new != old:
            is_changed = new.get("spec") != old.get("spec")
            new["metadata"]["generation"] = old.get("metadata", {}).get("generation", 0) + is_changed
            self.store(path, new)
            if path.split("/")[-2] in WORKLOADS:
                self.kernel.after(self.kernel.between(0.05, 0.5), partial(self._roll_out, path))
        return _answer(200, self.objects[path])

    @property
    def _time(self) -> str:
        return datetime.fromtimestamp(self.kernel.now, UTC).isoformat(timespec="seconds")

    def store(self, path: str, document: Document) -> None:
        """Store an object as a new version."""
        self.versions += 1
        document["metadata"]["resourceVersion"] = str(self.versions)
        self.objects[path] = document

    # The controller of workloads.

    def _roll_out(self, path: str) -> None:
        """Take one step of a rollout: start what is missing, end what is outdated, and write the status."""
        workload = self.objects.get(path)
        spec = workload["spec"] if workload else {"replicas": 0, "template": None}
        mine = {key: pod for key, pod in self.objects.items() if pod["metadata"].get("of") == path}
        live = {key: pod for key, pod in mine.items() if "deletionTimestamp" not in pod["metadata"]}
        new = [key for key, pod in live.items() if pod["metadata"]["made"] == spec["template"]]
        ready = [key for key in new if live[key]["status"]["phase"] == "Running"]
        replicas = spec.get("replicas", 1)
        for _ in range(replicas - len(new)):
            self._start(path, spec["template"])
        old = [key for key in live if key not in new]
        extra = new[replicas:] + (old if len(ready) >= replicas else [])
        for key in extra:
            live[key]["metadata"]["deletionTimestamp"] = self._time
            self.kernel.after(self.kernel.between(*ENDS), partial(self._end, path, key))
        if workload is not None:
            self._set_status(path, workload, len(ready), len(new), len(live) - len(extra))

    def _set_status(self, path: str, workload: Document, ready: int, updated: int, every: int) -> None:
        counts = {"updatedReplicas": updated, "replicas": every, "readyReplicas": ready, "availableReplicas": ready}
        status = {"observedGeneration": workload["metadata"]["generation"], **counts}
        if status != workload.get("status"):
            self.store(path, {**workload, "metadata": dict(workload["metadata"]), "status": status})

    def _start(self, path: str, template: Document) -> None:
        made, name = deepcopy(template), f"{path.rpartition('/')[2]}-{self.kernel.bytes(4).hex()}"
        metadata = {**made.get("metadata", {}), "name": name, "of": path, "made": made}
        key = f"/api/v1/namespaces/{path.split('/')[-3]}/pods/{name}"
        self.store(key, {"metadata": metadata, "spec": made["spec"], "status": {"phase": "Pending"}})
        self.kernel.after(self.kernel.between(*STARTS), partial(self._run, path, key))

    def _run(self, path: str, key: str) -> None:
        pod = self.objects.get(key)
        if pod is not None and "deletionTimestamp" not in pod["metadata"]:
            pod["status"] = {"phase": "Running"}
            self.started(key)
            self._roll_out(path)

    def _end(self, path: str, key: str) -> None:
        del self.objects[key]
        self._roll_out(path)


def _compact(value: Any) -> Any:
    """Return a copy without empty maps and lists, which the server leaves out."""
    if isinstance(value, dict):
        kept = {name: one if name == MANAGED else _compact(one) for name, one in value.items()}
        return {name: one for name, one in kept.items() if one not in ({}, [], None)}
    return [_compact(one) for one in value] if isinstance(value, list) else value


def _answer(status: int, document: Document) -> Answer:
    return {"Status": status, "Document": document}


@dataclass
class Response:
    """A response of urllib3."""

    status: int
    data: bytes
    length_remaining: int = 0

    def read(self, *_: object, **__: object) -> bytes:
        return self.data

    def json(self) -> Any:
        return json.loads(self.data)

    def release_conn(self) -> None:
        """Do nothing: there is no connection."""


@dataclass
class SimulatedPool:
    """`urllib3.PoolManager`, whose requests are calls of the simulated cluster."""

    calls: Calls

    def request(self, method: str, url: str, *, body: Any = None, retries: Any = None, **options: Any) -> Response:
        parts = urlsplit(url)
        request = {
            "Path": parts.path,
            "Query": dict(parse_qsl(parts.query)),
            "Kind": options["headers"].get("Content-Type", ""),
            "Document": json.loads(body) if body else None,
        }
        attempts = 1 if retries is ONCE else ATTEMPTS
        try:
            answer = self.calls.make(SERVICE, method, request, attempts=attempts)
        except Refusal as refusal:
            return Response(refusal.status, b"{}")
        except BotoCoreError as error:
            raise MaxRetryError(None, url, ReadTimeoutError(None, url, str(error))) from None  # type: ignore[arg-type]
        return Response(answer["Status"], json.dumps(answer["Document"]).encode())
