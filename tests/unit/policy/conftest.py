"""Loading a policy file from its text."""

from __future__ import annotations

import pytest

from tests.support.schemas import agreeing


@pytest.fixture
def load(tmp_path):
    """Writes text to a file and loads it; its JSON Schema has to agree."""

    def write(loader, text):
        path = tmp_path / "file.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return agreeing(loader, path)

    return write
