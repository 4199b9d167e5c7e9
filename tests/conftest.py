"""What every test starts from: no width of anybody's terminal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def no_columns() -> Iterator[None]:
    """Text is as wide as in files and pipes, whatever the tests run in; a test may set COLUMNS."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield
