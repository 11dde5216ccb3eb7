"""Keys and addresses before they are used."""

from __future__ import annotations

import pytest

from annals_client.config import ConfigurationError, Secret


@pytest.mark.parametrize("given", ["annals_key\n", "  annals_key\r\n"])
def test_white_space_around_a_key_is_dropped(given):
    assert Secret(given).value == "annals_key"


@pytest.mark.parametrize("given", ["ann\nals", "schlüssel", "a\x00b"])
def test_a_key_that_no_header_can_carry_is_refused(given):
    with pytest.raises(ConfigurationError, match="copy it again"):
        Secret(given)
