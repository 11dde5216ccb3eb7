"""Use cases. They see domain types and ports only."""
