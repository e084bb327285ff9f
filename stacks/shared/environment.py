"""Environment variables of functions: those of history, and the selection of a function's own."""

from collections.abc import Iterable, Mapping

from stacks.history.lake import HistoryLake

# A stage without the capability that they are of does not set them.
OF_HISTORY = frozenset(
    {
        *("HISTORY_STREAM", "HISTORY_OVERFLOW_URL", "HISTORY_BUCKET"),
        *("KEPT_BUCKET", "HISTORY_DATABASE", "QUERY_RESULTS"),
    }
)
OF_OTHERS = frozenset({"RENDEZVOUS_TABLE", "SPLIT_TABLE"})


def stream(lake: HistoryLake | None) -> dict[str, str]:
    """Return the variable with the stream of events; none without history."""
    return {} if lake is None else {"HISTORY_STREAM": lake.stream.delivery_stream_name}


def selected(everything: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the variables with these names, without those of capabilities that the stage does not have."""
    return {name: everything[name] for name in names if name in everything or name not in OF_HISTORY | OF_OTHERS}
