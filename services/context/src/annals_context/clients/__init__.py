"""Storage, through its stubs."""
