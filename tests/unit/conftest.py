"""Unit tests reach no service: every socket is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import pytest_socket


@pytest.fixture(autouse=True)
def _no_sockets() -> Iterator[None]:
    pytest_socket.disable_socket(allow_unix_socket=False)
    yield
    pytest_socket.enable_socket()
