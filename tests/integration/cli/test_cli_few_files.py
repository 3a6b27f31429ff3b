"""A daemon that may have too few open files says so, instead of half running."""

import subprocess
import sys

import pytest

from tests.integration.cli.cli_home import CliHome

ASKED = """
import resource
from upulse_cli.serve import demand_files
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(demand_files(), *resource.getrlimit(resource.RLIMIT_NOFILE), sep=";")
"""
REFUSED = "a limit of 32 open files is too small, it needs 64; allow it more (ulimit -n, LimitNOFILE=)"


@pytest.mark.parametrize(
    ("soft", "hard", "becomes"),
    [(32, 32, f"{REFUSED};32;32"), (32, 256, ";64;256"), (64, 64, ";64;64"), (128, 256, ";128;256")],
)
def test_the_limit_is_raised_as_far_as_needed_or_the_start_is_refused(
    soft: int, hard: int, becomes: str
) -> None:
    argv = [sys.executable, "-c", ASKED.format(soft=soft, hard=hard)]
    assert (
        subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout == f"{becomes}\n"
    )


def test_a_daemon_with_too_few_is_refused(quiet: CliHome) -> None:
    serve = f"ulimit -n 32; exec {sys.executable} -m upulse_cli.serve --home {quiet.path}"
    refused = subprocess.run(["sh", "-c", serve], capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 1
    assert REFUSED in refused.stderr
