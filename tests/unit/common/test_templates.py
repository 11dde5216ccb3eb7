"""Templates: words and fields, and precise complaints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals_common.templates import FIELDS, Field, TemplateError, parse_template


def test_words_and_fields_come_in_their_order():
    assert parse_template("On {page_url} {{as}} {custom.a b}.") == (
        "On ",
        Field("page_url"),
        " ",
        "{",
        "as",
        "}",
        " ",
        Field("custom.a b"),
        ".",
    )


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_can_be_named(name: str):
    assert parse_template(f"{{{name}}}") == (Field(name),)


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ("Hi {user}", "names the unknown field {user} at character 4; known are page_url, "),
        ("{}", "names the unknown field {} at character 1"),
        ("{custom.}", "names the unknown field {custom.}"),
        ("{ locale }", "names the unknown field { locale }"),
        ("a {locale", "has a single { at character 3; write a brace twice"),
        ("{{locale}", "has a single } at character 9"),
        ("{locale}}", "has a single } at character 9"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(template: str, complaint: str):
    with pytest.raises(TemplateError) as raised:
        parse_template(template)
    assert complaint in str(raised.value)


@given(st.text(st.sampled_from("ab{}. "), max_size=12))
def test_words_with_doubled_braces_come_back(words: str):
    escaped = words.replace("{", "{{").replace("}", "}}")
    assert "".join(str(part) for part in parse_template(escaped)) == words
