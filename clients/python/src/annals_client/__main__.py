"""The `annals` command."""

from __future__ import annotations

from annals_client.cli.app import annals


def main() -> None:
    """Run the command; exit 0 done, 1 failed, 2 used wrongly."""
    annals(prog_name="annals")


if __name__ == "__main__":
    main()
