"""The forms of the tokens that Arvados' clients send."""

from dataclasses import dataclass, field

from signalbox.sarracenia.rights.names import InvalidUserName, UserName, parse_user_name

VERSION = "v2"


@dataclass(frozen=True, slots=True)
class StageToken:
    """A token in the form of Arvados, `v2/USER/SECRET`, of a user of the stage."""

    user: UserName
    secret: str = field(repr=False)


def stage_token(text: str) -> StageToken | None:
    """Return the user and the secret of a token, or None for a token of another form."""
    version, _, rest = text.partition("/")
    name, _, secret = rest.partition("/")
    if version != VERSION or not secret:
        return None
    try:
        return StageToken(parse_user_name(name), secret)
    except InvalidUserName:
        return None
