"""An S3 server (moto) in a process of its own, with users whose signatures are checked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import requests

from tests.connectors.native.processes import free_port, wait_for


@dataclass(frozen=True, slots=True)
class S3Server:
    """Its address, and a key that may do everything but read below `geheim/`."""

    url: str
    key_id: str
    secret: str

    def client(self, service: str = "s3") -> Any:
        """A client of the test's own."""
        return boto3.client(
            service, endpoint_url=self.url, region_name="us-east-1",
            aws_access_key_id=self.key_id, aws_secret_access_key=self.secret,
        )  # fmt: skip


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Listens until the end of the block."""
    port = free_port()
    command = [
        sys.executable, "-c", "import sys; from moto.server import main; main(sys.argv[1:])",
        "-H", "127.0.0.1", "-p", str(port),
    ]  # fmt: skip
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            wait_for(port, process)
            yield _with_key(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()


def _with_key(url: str) -> S3Server:
    iam = S3Server(url, "setup", "setup").client("iam")
    iam.create_user(UserName="reader")
    statements = [
        {"Effect": "Allow", "Action": ["s3:*"], "Resource": "*"},
        {"Effect": "Deny", "Action": ["s3:GetObject"], "Resource": "arn:aws:s3:::*/geheim/*"},
    ]
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=policy)
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    requests.post(f"{url}/moto-api/reset-auth", data="0", timeout=10).raise_for_status()
    return S3Server(url, key["AccessKeyId"], key["SecretAccessKey"])
