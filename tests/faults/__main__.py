"""Every fault test and the table of what was seen: ``python -m tests.faults [pytest arguments]``.

The seed chooses the documents. It is printed, and taken from ``FAULTS_SEED`` to repeat a run.
"""

from __future__ import annotations

import os
import random
import sys

import pytest

from tests.faults.catalogue import ELSEWHERE
from tests.faults.conftest import SEED_VARIABLE


def main() -> int:
    os.environ.setdefault(SEED_VARIABLE, str(random.randrange(10**6)))
    tests = dict.fromkeys(test.removesuffix("::") for row in ELSEWHERE for test in row.tests)
    return pytest.main(["tests/faults", *tests, "-p", "no:xdist", "-p", "tests.faults.report", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
