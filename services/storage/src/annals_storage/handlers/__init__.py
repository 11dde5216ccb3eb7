"""gRPC handlers: proto to domain and back, nothing else."""
