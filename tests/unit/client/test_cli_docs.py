"""The documentation of the `annals` command against the command itself."""

from __future__ import annotations

from pathlib import Path

from annals_client.cli.app import annals


def test_every_command_is_in_the_documentation() -> None:
    documented = (Path(__file__).parents[3] / "docs/client.md").read_text(encoding="utf-8")
    table = documented.partition("## The command")[2]

    for name, command in annals.commands.items():
        # A row names a command, a group's inner ones behind it: `key create\|list`.
        rows = [row for row in table.splitlines() if f"`{name}" in row.split(" | ")[0]]
        assert rows, name
        for inner in getattr(command, "commands", {}):
            assert any(inner in row.split(" | ")[0] for row in rows), f"{name} {inner}"
