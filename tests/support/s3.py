"""An S3-compatible server on a socket of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from moto.server import ThreadedMotoServer

BUCKET = "annals-cold"
ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ObjectServer:
    """Where it listens, and a bucket in it."""

    endpoint: str

    @property
    def url(self) -> str:
        return f"s3://{BUCKET}/below"

    @property
    def options(self) -> str:
        """What storage is told besides the URL."""
        return json.dumps(
            {
                "key": "test",
                "secret": "test",
                "endpoint_url": self.endpoint,
                "client_kwargs": {"region_name": "us-east-1"},
            }
        )


@pytest.fixture(scope="module")
def object_server() -> Iterator[ObjectServer]:
    """The server of a module, with an empty bucket."""
    import boto3

    server = ThreadedMotoServer(ip_address=ADDRESS, port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket=BUCKET)
    client.close()
    yield ObjectServer(endpoint)
    server.stop()
