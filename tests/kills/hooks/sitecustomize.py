"""Loaded by every process that a command of the kill harness starts: it obeys the plan of its caller."""

import importlib.util
import json
import os
from pathlib import Path

if "EMPO_BI_TESTS_DIE_AT" in os.environ:
    found = importlib.util.spec_from_file_location("dying", Path(__file__).parent.parent / "dying.py")
    assert found is not None
    assert found.loader is not None
    dying = importlib.util.module_from_spec(found)
    import sys

    sys.modules["dying"] = dying  # where dataclasses look
    found.loader.exec_module(dying)
    dying.obey(dying.Plan(**json.loads(os.environ[dying.PLAN])))
