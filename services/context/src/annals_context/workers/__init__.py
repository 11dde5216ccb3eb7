"""Background work: leases jobs and runs the commands they stand for."""
