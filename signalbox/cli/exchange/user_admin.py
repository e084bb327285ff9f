"""A user of the exchange, as the commands of an administrator change it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.cli.exchange.stage import client_of, stage_name
from signalbox.cli.shared.output import print_fields, print_json
from signalbox.cli.shared.stage import StageOptions, output, say
from signalbox.cli.shared.user_keys import keep_user_key
from signalbox.errors import RejectedError
from signalbox.nearest import suggestion
from signalbox.sarracenia.broker_url import BrokerAccount
from signalbox.sarracenia.rights.names import UserName, parse_user_name

if TYPE_CHECKING:
    from signalbox.aws.exchange.exchanges import DynamoUsers
    from signalbox.aws.exchange.users import AccessKey, ExchangeUsers
    from signalbox.clients.deployment import Deployment
    from signalbox.exchange.model.records import User


@dataclass(frozen=True, slots=True)
class UserAdmin:
    """A user of a stage, with an administrator's access to IAM and to the records."""

    name: UserName
    deployment: "Deployment"
    identities: "ExchangeUsers"
    records: "DynamoUsers"

    @classmethod
    def of(cls, name: str, options: StageOptions) -> "UserAdmin":
        """Return the user of this name in the stage of the options. Raises `RejectedError` without an exchange."""
        from signalbox.aws.exchange.users import ExchangeUsers

        parsed = parse_user_name(name)
        deployment = options.deployment()
        output(deployment, "ExchangeControlQueueUrl")
        identities = ExchangeUsers.of(deployment.session(), deployment.outputs)
        return cls(parsed, deployment, identities, user_records(deployment))

    def known(self) -> "User":
        """Return the user's record. Raises `RejectedError` if it does not exist."""
        found = self.records.find(self.name)
        if found is None:
            hint = suggestion(self.name, self.names())
            raise RejectedError(
                f"user {self.name!r} does not exist: `signalbox user add {self.name} --role ROLE` creates it{hint}"
            )
        if found.is_live_only:
            raise RejectedError(
                f"user {self.name!r} only joins live and has no key: `signalbox user add {self.name} --role "
                f"{found.role}` creates one"
            )
        return found

    def names(self) -> list[str]:
        """Return the names of all users, also of those that only join live."""
        return [str(one.name) for one in (*self.records.every(), *self.records.live_only())]

    def end_rights(self) -> Mapping[str, Any]:
        """End the secret, the sessions and the rights of the removed user in all realms; return the ended rights."""
        return client_of(self.deployment).ask_object("forget_user", {"user": self.name})

    def unbind(self, *, before: "User | None" = None) -> dict[str, Any]:
        """Remove bindings to the user's queues and exchanges; return them, and the queues and exchanges that stay.

        Without `before` the user was removed, and all bindings are. Otherwise the user's role has changed, and the
        bindings from exchanges that the user may not read any more are removed.
        """
        earlier = {} if before is None else {"role": before.role.value, "ownership": before.ownership.value}
        fields = {"user": self.name, **earlier}
        reply = client_of(self.deployment).ask_object("unbind_user", fields)
        return {name: value for name, value in reply.items() if name != "user"}

    def issue_key(self, document: Mapping[str, object], *, as_json: bool) -> "AccessKey":
        """Create an access key, store it for other commands, print it and return it."""
        key = self.identities.new_key(self.name)
        kept = keep_user_key(self.deployment, self.name, ClientCredentials(key.access_key_id, key.secret_access_key))
        print_user({**document, **self._key_document(key)}, as_json=as_json)
        say("the secret is not shown again" + ("" if kept is None else f"; commands find it in {kept}"))
        say(f"in {self.deployment.place}")
        return key

    def _key_document(self, key: "AccessKey") -> dict[str, object]:
        stage = stage_name(self.deployment.outputs["ExchangeControlQueueUrl"])
        endpoint = self.deployment.session().client("sqs").meta.endpoint_url
        host, region = urlsplit(endpoint).netloc, self.deployment.region
        broker = BrokerAccount(self.name, host, stage, key.access_key_id, key.secret_access_key, region)
        return {
            "access_key_id": key.access_key_id,
            "secret_access_key": key.secret_access_key,
            "broker": broker.url,
            "credentials_conf": broker.url_with_key,
            **self.queues(),
        }

    def queues(self) -> dict[str, str]:
        """Return the URLs of the user's control queue and reply queue."""
        names, prefix = self.identities.control_queues.names, self.identities.control_queues.administrators_url
        own = {"control_queue": names.control_queue(self.name), "reply_queue": names.reply_queue(self.name)}
        return {kind: f"{prefix.rpartition('/')[0]}/{name}" for kind, name in own.items()}


def user_records(deployment: "Deployment") -> "DynamoUsers":
    """Return the records of the users of a stage."""
    from signalbox.aws.exchange.exchanges import DynamoUsers
    from signalbox.aws.shared.dynamodb import DynamoTable

    return DynamoUsers(DynamoTable(deployment.session().client("dynamodb"), output(deployment, "ExchangeTable")))


def print_user(document: Mapping[str, object], *, as_json: bool) -> None:
    """Print a user's document, as fields or as JSON."""
    if as_json:
        print_json(document)
    else:
        print_fields({name.replace("_", " "): str(value) for name, value in document.items()})
