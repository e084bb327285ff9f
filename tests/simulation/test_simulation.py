"""Seeds of the simulation that are the same in every run, each capability in a process of its own."""

import os
import subprocess
import sys

import pytest

from signalbox.local.files import CHECKOUT
from tests.simulation.__main__ import table_of_page
from tests.simulation.accesses import Learned
from tests.simulation.minimal import minimal
from tests.simulation.mutants import MUTANTS, Mutant, changed

# Each breaks no guarantee, and together they have outages, crashes and calm.
SEEDS = {"rendezvous": (1,), "exchange": (1, 2), "live": (61, 66), "revocation": (1,), "splitting": (1,)}
NOW = 0.0


@pytest.mark.parametrize(("capability", "seeds"), SEEDS.items(), ids=SEEDS)
def test_no_guarantee_is_broken(capability: str, seeds: tuple[int, ...]) -> None:
    done = simulated("--of", capability, *map(str, seeds))

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_has_the_steps_that_the_exploration_finds() -> None:
    done = simulated("--explore", "1000", "--of", "rendezvous", "--faults")

    assert done.stdout.startswith(table_of_page("rendezvous")), done.stdout + done.stderr
    assert "no other state is left" in done.stdout
    assert done.returncode == 0


def test_one_order_of_steps_that_commute_leads_to_the_ends_of_all_orders() -> None:
    done = simulated("--compare", "--of", "rendezvous")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "no end is lost" in done.stdout


def test_a_step_does_not_commute_with_what_another_agent_does_later() -> None:
    learned, writes = Learned(), frozenset({(("sqs", "queue"), True)})
    learned.follow(("other", 0, NOW), ("other", 1, NOW))
    learned.access(("other", 1, NOW), writes)

    assert learned.meets(writes, ("other", 0, NOW), {"other"})
    assert not learned.meets(writes, ("other", 0, NOW + 1), {"other"})
    assert not learned.meets(frozenset({(("sqs", "queue2"), True)}), ("other", 0, NOW), {"other"})


def simulated(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = (sys.executable, "-m", "tests.simulation", *arguments)
    return subprocess.run(  # noqa: S603 - our own program
        command, cwd=CHECKOUT, env=os.environ, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_a_module_of_the_product_with_one_change(mutant: Mutant) -> None:
    compile(changed(mutant), mutant.module, "exec")


def test_a_failing_seed_keeps_the_faults_that_it_needs() -> None:
    keys = tuple(map(str, range(20)))

    assert minimal(keys, lambda chosen: {"3", "11"} <= set(chosen)) == ("3", "11")
