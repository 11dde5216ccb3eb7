"""PostgreSQL: the only place that speaks SQL."""
