"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def conformance():
    """The folder of conformance files (CYGNET_CONFORMANCE, or ../shared/conformance beside the repository); skips without it."""
    folder = Path(os.environ.get("CYGNET_CONFORMANCE", REPOSITORY.parent / "shared" / "conformance"))
    if not folder.is_dir():
        pytest.skip("no conformance folder: set CYGNET_CONFORMANCE")
    return folder
