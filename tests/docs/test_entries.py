"""Every setting, error, command, alarm, output, event and metric has an entry, and every entry has its object."""

import ast
import importlib
import pkgutil
import re
import subprocess
from collections.abc import Iterator

import pytest
from typer.main import get_command

import signalbox
from glue_jobs.shared.arguments import WINDOW_ARGUMENTS
from glue_jobs.shared.report_run import REQUIRED
from signalbox.activity.events import EVENT_METRICS
from signalbox.aws.shared.telemetry import metric_name
from signalbox.cli.main import app
from signalbox.errors import SignalboxError
from signalbox.exchange.control import command_reader as exchange
from signalbox.history.event import HistoryEvent
from signalbox.live.admin import command_reader as live
from signalbox.rendezvous.reporting import prometheus
from signalbox.rendezvous.reporting.counters import LABELS, Metric
from signalbox.rendezvous.reporting.event_recorder import UNMEASURED
from signalbox.splitting.control import commands as splitting
from signalbox.verify.questions import QUESTIONS
from stacks.history.lake import COLUMNS
from stacks.settings.config import settings
from tests.docs.markdown import ROOT, entries, headings, rows, section
from tests.docs.settings import page as page_of_settings
from tests.infrastructure.templates import EVERYTHING, Templates, templates

DOCS = ROOT / "docs"
BY_A_JOB = "replayed"  # and no function, which alone write metrics
FIGURE = re.compile(r"\d+ (?:minutes|MB|GB)")
CAPABILITIES = ["rendezvous", "history", "splitting", "exchange", "live"]
KINDS = {"rendezvous": "Kinds", "splitting": "Kinds of splitting", "exchange": "Kinds of the exchange"}
KINDS |= {"live": "Kinds of live"}
KEPT = (ROOT / "signalbox" / "kept" / "objects.py",)
SENT_BY_ITSELF = "reconcile"  # the control plane sends it to its own queue
MAKERS = (
    "HistoryEvent",
    "_of_client",
    "_of_ended",
    "_of_kind",
    "_of_message",
    "_of_record",
    "_of_binding",
    "_of_copy",
    "_of_publication",
    "_of_grant",
)


@pytest.fixture(scope="module")
def stage() -> Templates:
    return templates(**EVERYTHING)


def test_the_table_of_settings_is_up_to_date():
    text = (DOCS / "settings.md").read_text()

    assert text == page_of_settings(text)
    assert entries(text)[: len(settings())] == [setting.name for setting in settings()]


def test_every_error_has_its_entry():
    for module in pkgutil.walk_packages(signalbox.__path__, "signalbox."):
        importlib.import_module(module.name)

    # Tests and benchmarks that ran before may have errors of their own.
    ours = {error.__name__ for error in _descendants(SignalboxError) if error.__module__.startswith("signalbox.")}
    assert set(entries((DOCS / "errors.md").read_text())) >= ours | {"InvalidConfig", "PackagingError"}


def test_every_entry_of_an_error_has_its_class():
    found = {
        name
        for folder in ("signalbox", "packages", "stacks")
        for source in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"^class (\w+)\(", source.read_text(), re.MULTILINE)
    }
    documented = {line.split("`")[1] for line in (DOCS / "errors.md").read_text().splitlines() if line[:3] == "| `"}

    assert documented - found == set()


def _descendants(error: type[Exception]) -> Iterator[type[Exception]]:
    yield error
    for child in error.__subclasses__():
        yield from _descendants(child)


def test_every_command_and_option_has_its_entry():
    page = DOCS / "commands.md"
    commands = dict(_commands(get_command(app), ("signalbox",)))

    assert set(headings(page, level=2)) == set(commands)
    for name, options in commands.items():
        text = section(page, name)
        assert {option for option in options if f"`{option}`" not in text} == set(), name


def test_every_entry_of_an_option_has_its_option():
    for name, options in _commands(get_command(app), ("signalbox",)):
        documented = set(re.findall(r"`(--?[a-z]+(?:-[a-z]+)*)`", section(DOCS / "commands.md", name)))
        assert documented - options == set(), name


def test_every_option_that_names_an_exchange_calls_it_so():
    assert [name for name, options in _commands(get_command(app), ("signalbox",)) if "--realm" in options] == []


def _commands(command: object, path: tuple[str, ...]) -> Iterator[tuple[str, set[str]]]:
    """Yield each command that is not a group, and the root command, with its options."""
    inner = getattr(command, "commands", {})
    if not inner or len(path) == 1:
        parameters = command.params  # type: ignore[attr-defined]
        yield " ".join(path), {name for parameter in parameters for name in _names(parameter)} - {"--help"}
    for name, child in inner.items():
        yield from _commands(child, (*path, name))


def _names(parameter: object) -> tuple[str, ...]:
    """Return the names of a parameter: options as typed, or an argument by its metavar."""
    if parameter.param_type_name == "argument" and parameter.metavar:  # type: ignore[attr-defined]
        return (parameter.metavar.strip("[].…"),)  # type: ignore[attr-defined]
    return (*parameter.opts, *parameter.secondary_opts)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("page", "heading", "commands"),
    [
        (
            "splitting",
            "Control messages",
            {name: fields for name, (fields, _) in splitting.COMMANDS.items() if name != SENT_BY_ITSELF},
        ),
        ("exchange", "Control messages", {name: fields for name, (fields, _) in exchange.COMMANDS.items()}),
        ("live", "Control messages", {name: fields for name, (fields, _) in live.COMMANDS.items()}),
    ],
    ids=["splitting", "exchange", "live"],
)
def test_every_command_of_a_control_queue_has_its_entry_and_fields(page, heading, commands):
    documented = {
        name: set(re.findall(r"`(\w+)`", cells[0]))
        for names, cells in rows(section(DOCS / f"{page}.md", heading)).items()
        for name in names.split("`, `")
    }

    assert documented.keys() == commands.keys()
    for name, fields in commands.items():
        assert set(fields) <= documented[name], name


def test_every_alarm_has_its_entry(stage):
    alarms = set(stage.every("AWS::CloudWatch::Alarm"))

    assert set(entries(section(DOCS / "operations.md", "Alarms"))) >= alarms
    assert set(rows(section(DOCS / "operations.md", "Alarms"))) == alarms


def test_every_alarm_has_a_severity_and_every_name_of_one_an_alarm(stage):
    alarms = [path.replace("/", "") for path in stage.every("AWS::CloudWatch::Alarm")]
    page = section(DOCS / "first-year.md", "Names and severity of alarms").splitlines()
    names = [name for line in page if line.startswith("| ") for name in re.findall(r"`(\w+)`", line)]

    assert [name for name in names if not any(name in alarm for alarm in alarms)] == []
    assert [alarm for alarm in alarms if not any(name in alarm for name in names)] == []


def test_every_output_has_its_entry(stage):
    outputs = {name for name in stage.stage["Outputs"] if not name.startswith("ExportsOutput")}

    assert set(entries(section(DOCS / "operations.md", "Outputs"))) == outputs


def test_every_question_about_aws_has_its_entry():
    lines = [line for line in section(DOCS / "first-day.md", "The questions").splitlines() if line.startswith("| ")]

    assert lines[1:] == [f"| {one.text} | {one.expected} | {one.otherwise} |" for one in QUESTIONS]


def test_every_field_of_an_event_has_its_entry_and_type():
    documented = rows(section(DOCS / "history.md", "The event"))

    assert {name: cells[0] for name, cells in documented.items()} == COLUMNS


@pytest.mark.parametrize(("capability", "heading"), KINDS.items(), ids=KINDS)
def test_every_kind_of_event_has_its_entry(capability, heading):
    shared = KEPT if capability in ("splitting", "exchange") else ()
    kinds = {
        argument.value
        for source in (*(ROOT / "signalbox" / capability).rglob("*events.py"), *shared)
        for call in ast.walk(ast.parse(source.read_text()))
        if isinstance(call, ast.Call)
        for argument in (*(k.value for k in call.keywords if k.arg == "kind"), *call.args[1:2])
        if isinstance(argument, ast.Constant) and _makes_an_event(call)
    }

    assert set(rows(section(DOCS / "history.md", heading))) == kinds


def _makes_an_event(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in MAKERS


def test_every_outcome_of_an_event_is_a_metric_with_an_entry():
    documented = set(entries(section(DOCS / "metrics.md", "CloudWatch")))

    assert {name for name in documented if not name.endswith("Latency")} == set(_event_metrics())
    assert {"AnswerDeliveredLatency", "TimeoutExpiredLatency"} <= documented


@pytest.mark.parametrize("capability", KINDS)
def test_every_event_counts_for_the_activity_of_its_capability(capability):
    documented = measured(KINDS[capability])
    outcomes = {kind: re.findall(r"`(\w+)`", cells[0]) for kind, cells in documented.items()}
    names = {metric_name(_event(kind, outcome)) for kind, found in outcomes.items() for outcome in found}

    assert {one.name for one in EVENT_METRICS[capability]} == names


def measured(heading: str) -> dict[str, list[str]]:
    """Return the rows of the kinds of events that have metrics."""
    return {
        kind: cells
        for kind, cells in rows(section(DOCS / "history.md", heading)).items()
        if kind not in (*UNMEASURED, BY_A_JOB)
    }


def _event_metrics() -> Iterator[str]:
    for heading in KINDS.values():
        for kind, cells in measured(heading).items():
            for outcome in re.findall(r"`(\w+)`", cells[0]):
                yield metric_name(_event(kind, outcome))


def _event(kind: str, outcome: str) -> HistoryEvent:
    return HistoryEvent("id", None, "rendezvous", kind, outcome)  # type: ignore[arg-type] # the moment does not matter


def test_every_metric_of_the_dashboard_has_an_entry(stage):
    (dashboard,) = stage.every("AWS::CloudWatch::Dashboard").values()
    shown = re.findall(r'"Signalbox","(\w+)"', str(dashboard["Properties"]["DashboardBody"]))

    assert shown
    assert set(shown) <= set(entries(section(DOCS / "metrics.md", "CloudWatch")))


def test_every_prometheus_metric_has_its_entry_and_labels():
    counters = {"|".join((metric, *("x" for _ in LABELS[metric]))): 1 for metric in Metric}
    page = prometheus.exposition(counters, available={})
    samples = dict(re.findall(r"^(\w+)\{(.*)\} ", page, re.MULTILINE))

    documented = rows(section(DOCS / "metrics.md", "Prometheus"))
    assert set(documented) == set(samples)
    for name, labels in samples.items():
        assert re.findall(r"`(\w+)`", documented[name][0]) == re.findall(r"(\w+)=", labels), name


def test_every_counter_has_its_entry_and_labels():
    documented = rows(section(DOCS / "metrics.md", "Counters in the table"))

    assert set(documented) == set(Metric)
    for metric, labels in LABELS.items():
        assert tuple(re.findall(r"`(\w+)`", documented[metric][0]))[: len(labels)] == labels, metric


def test_every_argument_of_the_reports_has_its_entry():
    documented = rows(section(DOCS / "history.md", "The reports"))
    assert {name for name in documented if name.startswith("--")} == {
        f"--{name}" for name in (*REQUIRED, *WINDOW_ARGUMENTS)
    }


def test_every_capability_is_in_the_readmes_table():
    table = [line.split(" | ") for line in section(ROOT / "README.md", "Guarantees").splitlines() if "|" in line]

    assert [row[0].strip("| ") for row in table[2:]] == CAPABILITIES


def test_every_make_target_has_its_entry():
    targets = re.findall(r"^([a-z]+): ;", (ROOT / "Makefile").read_text(), re.MULTILINE)

    documented = entries(section(ROOT / "CONTRIBUTING.md", "Make targets"))
    assert sorted(documented) == sorted(f"make {target}" for target in targets)


def test_every_program_that_writes_a_page_has_its_entry():
    writers = re.compile(r"^    +(?:PAGE|PICTURE)\.write_text", re.MULTILINE)
    programs = {path.stem for path in (ROOT / "tests/docs").glob("*.py") if writers.search(path.read_text())}

    assert set(entries(section(ROOT / "CONTRIBUTING.md", "Documentation"))) == programs


def test_a_benchmark_that_does_not_exist_is_answered_with_those_that_do():
    command = ["make", "--no-print-directory", "bench", "OF=live nonsense"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (run.returncode, run.stdout) == (2, "")
    assert "OF: expected " in run.stderr
    assert " splitting" in run.stderr


def test_make_help_and_the_pages_agree_on_what_a_target_takes():
    printed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    shown = {
        target: set(FIGURE.findall(line)) for target, line in re.findall(r"^(make \w+)\t(.*)$", printed, re.MULTILINE)
    }
    tiers = rows(section(ROOT / "CONTRIBUTING.md", "Tiers"))
    quick_start = section(ROOT / "README.md", "Quick start")

    for target in ("make check", "make test", "make release"):
        assert set(FIGURE.findall(tiers[target][1])) == shown[target]
    for target in ("make up", "make test"):
        sentence = re.search(rf"`{target}` .*?\.(?= |$)", quick_start)
        assert sentence
        assert set(FIGURE.findall(sentence[0])) == shown[target]
