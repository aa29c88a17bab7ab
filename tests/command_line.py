"""The command line as tests use it: in this process, which is quick, or in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from click.testing import CliRunner, Result
from store_tools import environment

from empo_bi.cli import cli


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="empo-bi")


def json_of(*arguments: object) -> Any:
    """What a command that ends well prints with ``--json``; anything else on stdout would not parse."""
    done = invoke(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def run_command(*arguments: object, code: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """``python -m empo_bi`` as a process; ``code`` runs before it."""
    script = f"import sys; sys.argv[0] = 'empo-bi'\n{code}\nfrom empo_bi.cli import main; main()"
    command = [sys.executable, "-c", script] if code else [sys.executable, "-m", "empo_bi"]
    given = [*command, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, timeout=120, env=environment() | variables)
