"""The option `--sign-in`: join a realm as a user of its identity provider."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from signalbox.cli.shared.stage import output, say
from signalbox.clients.deployment import AwsDeployment, Deployment, LocalDeployment
from signalbox.clients.identity.device import DeviceCode
from signalbox.clients.identity.provider import InvalidProvider, fetch_json
from signalbox.clients.identity.sign_ins import SignIns, state_folder
from signalbox.clients.identity.signed_in import SignedIn
from signalbox.clients.identity.tokens import TokenRequest
from signalbox.clients.live.session import Login
from signalbox.errors import RejectedError, SignalboxError
from signalbox.exchange.model.issuers import LOOPBACK


@dataclass(frozen=True, slots=True)
class RealmIssuer:
    """An identity provider of a realm, as the live page's configuration shows it."""

    label: str
    asked: TokenRequest

    @property
    def name(self) -> str:
        """Return the name for `--issuer`: the label, or the URL."""
        return self.label or self.asked.issuer


def deployment_of_page(page_url: str) -> Deployment:
    """Return the stage of a live page's address, as far as its configuration describes it.

    Raises `RejectedError` for a page whose connections are not encrypted, unless they stay on this machine.
    """
    found = page_config(page_url)
    url = urlsplit(urljoin(_folder(page_url), str(found.get("websocket_url", ""))))
    scheme = url.scheme.replace("http", "ws")
    if scheme != "wss" and url.hostname not in LOOPBACK:
        raise RejectedError(f"{page_url} names {url.geturl()!r}, which is not encrypted: tickets and tokens need wss")
    realms = found.get("realms")
    realm = str(realms[0]) if isinstance(realms, list) and len(realms) == 1 else ""
    return AwsDeployment(
        outputs={"LivePageUrl": _folder(page_url)},
        region="",
        rendezvous_url="",
        websocket_url=url._replace(scheme=scheme).geturl(),
        realm=realm,
    )


def signed_in_login(deployment: Deployment, realm: str, wanted: str | None) -> Login:
    """Return a login with the tokens of a user who signs in at the first request, unless a sign-in is stored."""
    page = page_url_of(deployment)
    issuer = chosen(_issuers(page_config(page, realm), realm), realm, wanted)
    source = SignedIn(issuer.asked, SignIns(state_folder(), _folder(page)), _show)
    return Login(realm, token=source.token)


def listed_realms(deployment: Deployment) -> list[str]:
    """Return the realms that the live page lists; none if it does not respond, or may not list them."""
    try:
        found = page_config(page_url_of(deployment)).get("realms")
    except SignalboxError:
        return []
    return [str(one) for one in found] if isinstance(found, list) else []


def page_url_of(deployment: Deployment) -> str:
    """Return the URL of a stage's live page."""
    if isinstance(deployment, LocalDeployment):
        return f"{deployment.endpoint_url}/live/"
    return output(deployment, "LivePageUrl")


def chosen(issuers: Sequence[RealmIssuer], realm: str, wanted: str | None) -> RealmIssuer:
    """Return the identity provider to sign in with. Raises `RejectedError` if it is not clear which one."""
    if not issuers:
        add = f"signalbox exchange declare {realm} --issuer URL --audience ID"
        raise RejectedError(f"{realm} has no identity provider: `{add}` adds one")
    if wanted is None and len(issuers) == 1:
        return issuers[0]
    found = [issuer for issuer in issuers if wanted in (issuer.label, issuer.asked.issuer)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(issuer.name for issuer in issuers)
    given = "has several identity providers" if wanted is None else f"has no identity provider {wanted!r}"
    raise RejectedError(f"{realm} {given}: give --issuer with one of {names}")


def _issuers(config: Mapping[str, Any], realm: str) -> list[RealmIssuer]:
    try:
        return [
            RealmIssuer(str(one["label"]), TokenRequest(str(one["url"]), str(one["client_id"]), str(one["audience"])))
            for one in config.get("issuers", ())
            if one["realm"] == realm
        ]
    except (KeyError, TypeError) as error:
        raise InvalidProvider("the live page's configuration is of another version: update this command") from error


def page_config(page_url: str, realm: str = "") -> dict[str, Any]:
    """Return the configuration that the live page gives its visitors. Raises `SignalboxError`."""
    query = f"?{urlencode({'realm': realm})}" if realm else ""
    return fetch_json(f"{_folder(page_url)}config.json{query}")


def _folder(page_url: str) -> str:
    """Return the folder of the page, also for an address that was copied from a browser."""
    parts = urlsplit(page_url)
    return parts._replace(path=f"{parts.path.rpartition('/')[0]}/", query="", fragment="").geturl()


def _show(code: DeviceCode) -> None:
    say(f"to sign in, open {code.url} on any device and enter the code {code.user_code}")
    if code.complete_url:
        say(f"or open {code.complete_url}")
    say(f"the code is valid for {max(1, round(code.expires_in_seconds / 60))} min; waiting …")
