"""Pure domain: budget, strategies, formats."""
