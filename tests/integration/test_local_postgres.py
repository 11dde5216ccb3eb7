"""A PostgreSQL of one's own starts also where an earlier attempt failed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from annals_local.postgres import start_postgres


def test_an_attempt_after_a_failed_one_starts_the_server(tmp_path: Path) -> None:
    start_postgres(tmp_path / "pg").stop()
    settings = tmp_path / "pg" / "postgresql.auto.conf"
    good = settings.read_bytes()
    settings.write_bytes(b"no such setting\n")
    with pytest.raises(subprocess.SubprocessError):
        start_postgres(tmp_path / "pg")

    settings.write_bytes(good)
    server = start_postgres(tmp_path / "pg")

    try:
        with psycopg.connect(server.app_url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        server.stop()
