"""What is typed wrongly at the `annals` command is named; what is typed rightly is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import click
import pytest

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import search_service_pb2
from annals_client.cli.app import annals
from annals_client.cli.parameters import WholeNumber
from annals_common import errors as server_errors

DIGITS_400, DIGITS_5000 = "9" * 400, "9" * 5_000


def leaves(command: click.Command, name: str = "annals") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for inner, each in command.commands.items():
            yield from leaves(each, f"{name} {inner}")
    else:
        yield name, command


def is_bounded(kind: click.ParamType) -> bool:
    if isinstance(kind, click.IntRange):
        return kind.max is not None
    return not isinstance(kind, click.types.IntParamType)


def test_every_number_is_of_a_range_that_the_api_can_carry():
    unbounded = [
        f"{name} {parameter.name}"
        for name, command in leaves(annals)
        for parameter in command.params
        if not is_bounded(parameter.type)
    ]

    assert unbounded == []
    assert any(isinstance(p.type, WholeNumber) for _, c in leaves(annals) for p in c.params)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["context", "c1", "--budget", "99999999999"], ["--budget", "99999999999"]),
        (["list", "c1", "--after", DIGITS_400], ["--after"]),
        (["usage", "--limit", "2147483648"], ["--limit"]),
        (
            ["tenant", "search-parameters", "set", "candidates_per_hit=99999999999"],
            ["candidates_per_hit", "out of range"],
        ),
        (
            ["tenant", "search-parameters", "set", "time_bonus=0", "time_bonus=1"],
            ["time_bonus is named twice"],
        ),
        (
            ["append", "c1", "x", "--metadata", f'{{"n": {DIGITS_400}}}'],
            ["--metadata", "beyond what a double can hold"],
        ),
        (
            ["append", "c1", "x", "--metadata", f'{{"n": {DIGITS_5000}}}'],
            ["--metadata", "a number of 5,000 digits"],
        ),
        (
            ["append", "c1", "--event", f'{{"metadata": {{"n": {DIGITS_400}}}}}'],
            ["--event", "beyond what a double can hold"],
        ),
        (
            ["append", "c1", "--event", f'{{"metadata": {{"n": {DIGITS_5000}}}}}'],
            ["--event", "beyond what a double can hold"],
        ),
        (
            ["append", "c1", "--event", '{"message": {"role": "ROBOT"}}'],
            ["--event", "ROBOT", "ROLE_USER, ROLE_ASSISTANT"],
        ),
    ],
)
def test_a_value_that_cannot_be_sent_is_named(server, run, arguments, says):
    result = run(*arguments)

    assert result.exit_code == 2
    assert [word for word in says if word not in result.stderr] == []
    assert "sys.set_int" not in result.stderr
    assert not server.received


def test_a_search_sends_its_filters(server, run):
    server.answer("SearchEvents", search_service_pb2.SearchEventsResponse())
    words = "--agent a1 --user u1 --session s1 --type tool-call --type message --role user"
    more = "--tool find --from 2026-04-01 --to 2026-05-01T08:30:00 --exclude e1 --all-branches"
    ranked = "--reference-time 2026-04-20 --min-score 0.2"

    result = run("search", "refund", *words.split(), *more.split(), *ranked.split())

    sent = server.received["SearchEvents"][0].request
    assert result.exit_code == 0, result.stderr
    where = sent.filter
    assert (list(where.agent_ids), where.user_id, where.session_id) == (["a1"], "u1", "s1")
    assert list(where.types) == [res.EVENT_TYPE_TOOL_CALL, res.EVENT_TYPE_MESSAGE]
    assert (list(where.roles), list(where.tool_names)) == ([res.ROLE_USER], ["find"])
    assert where.start_time.ToDatetime(UTC) == datetime(2026, 4, 1, tzinfo=UTC)
    assert where.end_time.ToDatetime(UTC) == datetime(2026, 5, 1, 8, 30, tzinfo=UTC)
    assert (list(where.exclude_event_ids), where.all_branches, where.branch) == (["e1"], True, 0)
    assert sent.reference_time.ToDatetime(UTC) == datetime(2026, 4, 20, tzinfo=UTC)
    assert sent.min_score == 0.2


class TestImport:
    @pytest.fixture
    def files(self, tmp_path):
        """An import that succeeds up to the server, beside another one."""
        names = []
        for number in range(2):
            path = tmp_path / f"chat{number}.json"
            path.write_text(json.dumps([{"role": "user", "content": f"{number}"}]))
            names.append(path.name)
        return names

    def test_of_several_files_names_the_one_that_failed(self, server, run, files):
        server.answer("Parse", server_errors.FieldInvalidError("payload", "must be better"))

        result = run("import", *files)

        assert result.exit_code == 1
        assert "chat0.json: " in result.stderr
        assert "must be better" in result.stderr

    def test_text_that_is_no_unicode_is_told_with_its_file(self, run, files, tmp_path):
        (tmp_path / "odd.json").write_text('[{"role": "user", "content": "\\ud800"}]')

        result = run("import", "odd.json", *files)

        assert result.exit_code == 1
        assert result.stderr == "Error: odd.json: the text is not valid Unicode (UTF-8)\n"

    def test_a_number_of_too_many_digits_is_said_in_plain_words(self, run, tmp_path):
        (tmp_path / "long.json").write_text(f'[{{"role": "user", "content": {DIGITS_5000}}}]')

        result = run("import", "long.json")

        assert result.exit_code == 1
        assert "long.json: is not JSON: a number of 5,000 digits" in result.stderr
