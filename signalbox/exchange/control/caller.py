"""Who asks the control plane for something, and what that one may do."""

from dataclasses import dataclass

from signalbox.exchange.control.errors import NotPermitted, NotThere
from signalbox.exchange.model.ports import Users
from signalbox.exchange.model.records import Kind, Place, User
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role, is_permitted, permitted_names


@dataclass(frozen=True, slots=True)
class Asker:
    """A user, or without one an administrator of the stage: whoever may send to that control queue."""

    user: User | None

    @property
    def name(self) -> UserName | None:
        """Return the user's name."""
        return self.user.name if self.user else None

    @property
    def role(self) -> Role:
        """Return the role, which for administrators is `admin`."""
        return self.user.role if self.user else Role.ADMIN

    @property
    def ownership(self) -> Ownership:
        """Return how names tell what belongs to the user."""
        return self.user.ownership if self.user else Ownership.STRICT

    def may(self, right: Right, place: Place) -> bool:
        """Say whether a right is there."""
        if self.user is None:
            return True
        return is_permitted(self.user.name, self.role, right, name=place.name, ownership=self.ownership)

    def require(self, *rights: tuple[Right, Place]) -> None:
        """Raise `NotPermitted` with each of these rights that is not there."""
        denials = [
            _denial(self.user, right, place)
            for right, place in rights
            if self.user is not None and not self.may(right, place)
        ]
        if denials:
            raise NotPermitted("\n".join(denials))


def asker(users: Users, name: UserName | None) -> Asker:
    """Return who asks: a user, or with None the administrators. Raises `NotThere`."""
    if name is None:
        return Asker(None)
    user = users.find(name)
    if user is None:
        raise NotThere(f"there is no user {str(name)!r}: have an administrator add the user")
    return Asker(user)


def _denial(user: User, right: Right, place: Place) -> str:
    patterns = permitted_names(user.name, user.role, right, ownership=user.ownership)
    initial = "x" if place.kind is Kind.EXCHANGE else "q"
    names = ", ".join(pattern for pattern in patterns if pattern.startswith(initial))
    permitted = f"the {place.kind}s of such a user are {names}" if names else f"such a user may {right} no {place.kind}"
    remedy = "use one of them, or have" if names else "have"
    return (
        f"user {str(user.name)!r} ({user.role}) may not {right} {place}: {permitted}; "
        f"{remedy} an administrator give the user another role"
    )
