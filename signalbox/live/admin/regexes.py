"""Regular expressions of the patterns of grants, searched in the frames of topics as those of bindings are."""

from signalbox.exchange.matching.regexes import DOT, WORD, escaped, words_regex
from signalbox.live.admin.coverage import GROUP, USER
from signalbox.live.admin.principals import PrincipalName, user_of, word_of
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

ANY_NAME = "[^.]+"


def grant_regex(pattern: TopicPattern, principal: PrincipalName) -> str:
    """Return the regular expression for the topics that a grant's pattern matches for a principal.

    `{group}`, and `{user}` for a group, match each name: which of these topics a member may see is a question for each.
    """
    components = [_of_component(component, pattern.match, principal) for component in pattern.uri.split(".")]
    if pattern.match is not MatchPolicy.PREFIX:
        return words_regex([f"{component}{DOT}" for component in components])
    if not pattern.uri:
        return "^>"
    return f"^>{DOT.join(components)}{WORD}{DOT}"


def _of_component(component: str, match: MatchPolicy, principal: PrincipalName) -> str:
    if component == GROUP:
        return ANY_NAME
    if component == USER:
        user = user_of(principal)
        return ANY_NAME if user is None else escaped(word_of(user))
    return WORD if not component and match is MatchPolicy.WILDCARD else escaped(component)
