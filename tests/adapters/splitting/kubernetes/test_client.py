"""The client of a cluster over real TLS: trust, time-outs, retries, renewed tokens and connections, bounded answers."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from urllib3 import Timeout

from signalbox.aws.splitting.kubernetes import client as module
from signalbox.aws.splitting.kubernetes.access import ApiAddress, Remedies
from signalbox.aws.splitting.kubernetes.api import (
    ClusterGone,
    ClusterRefused,
    ClusterUnavailable,
    FieldConflict,
    ObjectChanged,
    PatchKind,
)
from signalbox.aws.splitting.kubernetes.client import ClusterClient
from tests.adapters.splitting.kubernetes.api_server import HOST, Answer, ApiServer, Authority, running
from tests.fakes.http_endpoint import free_port

PATH = "/apis/apps/v1/namespaces/shop/deployments/meme-app"
PODS = "/api/v1/namespaces/shop/pods"
TOKEN, NEXT_TOKEN = "first.token", "second.token"
REMEDIES = Remedies("check the address", "check the CA", "renew the token", "apply the role")


@dataclass
class Access:
    """The connections and tokens that a test gives, the last of each for ever."""

    connections: list[ApiAddress | Exception]
    tokens: list[str] = field(default_factory=lambda: [TOKEN, NEXT_TOKEN])
    remedies: Remedies = REMEDIES

    def connection(self, *, again: bool = False) -> ApiAddress:
        if again and len(self.connections) > 1:
            self.connections.pop(0)
        if isinstance(self.connections[0], Exception):
            raise self.connections[0]
        return self.connections[0]

    def token(self, *, again: bool = False) -> str:
        if again:
            self.tokens.pop(0)
        return self.tokens[0]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def server(authority, tmp_path) -> Iterator[ApiServer]:
    with running(authority.server(tmp_path)) as api:
        yield api


def client_of(*connections: ApiAddress | Exception, timeout: Timeout = module.TIMEOUT) -> ClusterClient:
    return ClusterClient("prod", Access(list(connections)), timeout)


@pytest.fixture
def client(server, authority) -> ClusterClient:
    return client_of(ApiAddress(server.endpoint + "/", authority.pem))


def bearers(server: ApiServer) -> list[str]:
    return [request.headers["Authorization"] for request in server.requests]


def test_an_object_is_read_with_the_token(server, client):
    server.answers = [Answer(body={"kind": "Deployment"})]

    found = client.get(PATH)

    (request,) = server.requests
    assert found == {"kind": "Deployment"}
    assert (request.method, request.path, request.body) == ("GET", PATH, None)
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"


def test_a_list_is_read_with_its_selector(server, client):
    client.get(PODS, labelSelector="app=meme-app,tier in (a)")

    assert server.requests[0].path == PODS + "?labelSelector=app%3Dmeme-app%2Ctier+in+%28a%29"


def test_an_object_that_does_not_exist_is_none(server, client):
    server.answers = [Answer(404, {"kind": "Status", "reason": "NotFound"})]

    assert client.get(PATH) is None


@pytest.mark.parametrize("force", [False, True])
def test_fields_are_applied_by_the_field_manager_of_signalbox(server, client, force):
    client.apply(PATH, {"spec": {}}, force=force)

    (request,) = server.requests
    assert (request.method, request.body) == ("PATCH", {"spec": {}})
    assert request.path == f"{PATH}?fieldManager=signalbox&force={str(force).lower()}"
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"


@pytest.mark.parametrize("kind", PatchKind)
def test_a_patch_has_the_media_type_of_its_kind(server, client, kind):
    client.patch(PATH, [] if kind is PatchKind.JSON else {}, kind=kind)

    (request,) = server.requests
    assert request.headers["Content-Type"] == kind.value
    assert request.path == f"{PATH}?fieldManager=signalbox"


def test_a_conflict_names_the_managers_and_the_fields(server, client):
    causes = [
        {"reason": "FieldManagerConflict", "message": 'conflict with "helm" using apps/v1', "field": ".spec.a"},
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "argo \\"cd\\"" using apps/v1',
            "field": ".spec.b",
        },
    ]
    server.answers = [Answer(409, {"reason": "Conflict", "details": {"causes": causes}})]

    with pytest.raises(
        FieldConflict, match=r"patch deployments/meme-app in namespace shop: \.spec\.a, \.spec\.b"
    ) as it:
        client.apply(PATH, {})

    assert it.value.managers == ("helm", 'argo \\"cd\\"')
    assert it.value.fields == (".spec.a", ".spec.b")


def test_a_stale_version_is_retried_later(server, client):
    server.answers = [Answer(409, {"reason": "Conflict", "message": "the object has been modified"})]

    with pytest.raises(ObjectChanged, match="409: the object has changed since it was read"):
        client.apply(PATH, {}, force=True)


def test_a_refused_token_is_read_again_once(server, client):
    server.answers = [Answer(401), Answer(body={"kind": "Deployment"})]

    assert client.get(PATH) == {"kind": "Deployment"}
    assert bearers(server) == [f"Bearer {TOKEN}", f"Bearer {NEXT_TOKEN}"]


def test_a_second_refusal_names_the_remedy_and_no_token(server, client):
    server.answers = [Answer(401, {"message": f"invalid: {TOKEN}"})]

    with pytest.raises(ClusterRefused) as refused:
        client.get(PATH)

    assert str(refused.value) == (
        "cluster 'prod': get deployments/meme-app in namespace shop: 401: the cluster does not accept the token: "
        "renew the token"
    )
    assert len(server.requests) == 2


def test_a_missing_right_names_the_call_and_the_remedy(server, client):
    message = 'pods is forbidden: User "x" cannot list resource "pods" in the namespace "shop"'
    server.answers = [Answer(403, {"reason": "Forbidden", "message": message})]

    with pytest.raises(ClusterRefused) as refused:
        client.get(PODS)

    assert (
        str(refused.value) == f"cluster 'prod': list pods in namespace shop: 403 Forbidden ({message}): apply the role"
    )


@pytest.mark.parametrize("status", [400, 403])
def test_a_refusal_of_an_admission_webhook_is_quoted_without_a_remedy(server, client, status):
    message = 'admission webhook "policy.example" denied the request: ' + "no " * 200
    server.answers = [Answer(status, {"message": message})]

    with pytest.raises(ClusterRefused) as refused:
        client.apply(PATH, {})

    assert str(refused.value).endswith(f": {status} ({message[:300]})")


def test_an_invalid_object_is_refused_without_its_values(server, client):
    causes = [{"field": "spec.template", "message": "Invalid value: my-password"}, {"message": "no field"}]
    status = {"reason": "Invalid", "message": "Invalid value: my-password", "details": {"causes": causes}}
    server.answers = [Answer(422, status)]

    with pytest.raises(ClusterRefused, match=r"422 Invalid \(spec\.template\)$"):
        client.apply(PATH, {})


def test_a_patch_of_an_object_that_is_gone_is_refused(server, client):
    server.answers = [Answer(404, {"reason": "NotFound", "message": 'deployments.apps "meme-app" not found'})]

    with pytest.raises(ClusterRefused, match=r'404 NotFound \(deployments.apps "meme-app" not found\)$'):
        client.patch(PATH, {}, kind=PatchKind.MERGE)


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("method", ["get", "apply"])
def test_an_idempotent_call_is_retried_after_the_time_that_the_server_asks_for(server, client, status, method):
    busy = Answer(status, {"reason": "Busy"}, {"Retry-After": "0"})
    server.answers = [busy, busy, Answer(body={"kind": "Deployment"})]

    found = client.get(PATH) if method == "get" else client.apply(PATH, {})

    assert found == {"kind": "Deployment"}
    assert len(server.requests) == 3


def test_the_wait_for_a_busy_server_is_limited(server, client, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT_SECONDS", 0.01)
    server.answers = [Answer(429, {"reason": "TooManyRequests"}, {"Retry-After": "3600"})]

    with pytest.raises(ClusterUnavailable, match=r"list pods in namespace shop: 429 TooManyRequests$"):
        client.get(PODS)

    assert len(server.requests) == 3


def test_a_json_patch_is_sent_once(server, client):
    server.answers = [Answer(500), Answer()]

    with pytest.raises(ClusterUnavailable, match="500"):
        client.patch(PATH, [], kind=PatchKind.JSON)

    assert len(server.requests) == 1


def test_redirects_are_not_followed(server, client):
    server.answers = [Answer(302, headers={"Location": server.endpoint + "/other"})]

    with pytest.raises(ClusterRefused, match="302"):
        client.get(PATH)

    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"<html>", b"[1]", pytest.param(b"[" * 100_000, id="deep")])
def test_an_answer_that_is_no_object_is_not_taken(server, client, body):
    server.answers = [Answer(body=body)]

    with pytest.raises(ClusterUnavailable, match="is this an API server"):
        client.get(PATH)


@pytest.mark.parametrize(
    "body", [b"<html>Bad gateway", b"[]", pytest.param(b"[" * 100_000, id="deep"), {"details": None}]
)
def test_an_error_of_something_in_front_of_the_api_server_is_retried_later(server, client, body):
    server.answers = [Answer(502, body, {"Retry-After": "0"})]

    with pytest.raises(ClusterUnavailable, match=r"get deployments/meme-app in namespace shop: 502$"):
        client.get(PATH)


def test_an_answer_has_a_largest_size(server, client, monkeypatch):
    monkeypatch.setattr(module, "LARGEST_ANSWER_BYTES", 1 << 20)
    server.answers = [Answer(body={"items": "x" * (2 << 20)})]

    with pytest.raises(ClusterRefused, match="the answer has more than 1 MiB"):
        client.get(PODS)


def test_a_call_ends_while_the_answer_comes_byte_by_byte(server, client, monkeypatch):
    monkeypatch.setattr(module, "CALL_SECONDS", 0.5)
    server.answers = [Answer(body=b"{" + b" " * 200 + b"}", pause=0.05)]

    with pytest.raises(ClusterUnavailable, match="no answer"):
        client.get(PATH)


def test_an_answer_that_ends_too_early_is_not_taken(server, client):
    server.answers = [Answer(body={}, length=10)]

    with pytest.raises(ClusterUnavailable, match="no answer"):
        client.get(PATH)


def test_a_server_with_the_certificate_of_another_ca_gets_no_token(server):
    client = client_of(ApiAddress(server.endpoint, Authority().pem))

    with pytest.raises(ClusterRefused) as refused:
        client.get(PATH)

    assert str(refused.value).startswith(
        f"cluster 'prod': get deployments/meme-app in namespace shop: {server.endpoint}"
    )
    assert str(refused.value).endswith("; check the CA")
    assert server.requests == []


def test_a_server_with_the_certificate_of_another_host_gets_no_token(authority, tmp_path):
    with running(authority.server(tmp_path, "127.0.0.2")) as server:
        with pytest.raises(ClusterRefused, match=r"is not trusted: .*IP address mismatch.*; check the CA"):
            client_of(ApiAddress(server.endpoint, authority.pem)).get(PATH)

        assert server.requests == []


@pytest.mark.parametrize(
    "ca", ["", "no certificate", "ü", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"]
)
def test_a_ca_that_is_none_trusts_nobody(server, ca):
    with pytest.raises(ClusterRefused, match="the CA is no certificate in PEM: check the CA"):
        client_of(ApiAddress(server.endpoint, ca)).get(PATH)

    assert server.requests == []


def test_a_server_that_hangs_is_unavailable(server, authority):
    server.answers = [Answer(None)]
    connection = ApiAddress(server.endpoint, authority.pem)

    with pytest.raises(ClusterUnavailable, match=r"no answer from https://.* \(ReadTimeoutError\); check the address"):
        client_of(connection, timeout=Timeout(connect=2, read=0.1)).get(PATH)

    assert len(server.requests) == 2


def test_a_server_that_is_away_is_unavailable(authority):
    connection = ApiAddress(f"https://{HOST}:{free_port()}", authority.pem)

    with pytest.raises(
        ClusterUnavailable, match=r"no answer from https://.* \(NewConnectionError\); check the address"
    ):
        client_of(connection).get(PATH)


def test_a_connection_is_read_again_when_it_fails(server, authority):
    before = ApiAddress(f"https://{HOST}:{free_port()}", authority.pem)
    client = client_of(before, ApiAddress(server.endpoint, authority.pem))

    assert client.get(PATH) == {}


def test_a_ca_is_read_again_when_it_does_not_fit(server, authority):
    client = client_of(ApiAddress(server.endpoint, Authority().pem), ApiAddress(server.endpoint, authority.pem))

    assert client.get(PATH) == {}


def test_a_cluster_that_was_deleted_is_gone(authority):
    client = client_of(ApiAddress(f"https://{HOST}:{free_port()}", authority.pem), ClusterGone("gone"))

    with pytest.raises(ClusterGone):
        client.get(PATH)


def test_one_connection_is_used_for_many_calls(server, client):
    for _ in range(3):
        client.get(PATH)

    assert client._pool is not None
    assert client._pool[1].connection_from_url(server.endpoint).num_connections == 1


def test_a_path_of_another_form_is_named_as_it_is(server, client):
    server.answers = [Answer(404, {})]

    with pytest.raises(ClusterRefused, match="patch /version: 404"):
        client.apply("/version", {})
