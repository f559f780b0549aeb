"""A bucket of Amazon S3, or of any store that speaks its protocol."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

import boto3
import requests
from botocore import UNSIGNED
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    ParamValidationError,
)
from pydantic import Field, SecretStr
from requests.structures import CaseInsensitiveDict
from requests_hardened.ip_filter import InvalidIPAddress

from config.errors import (
    CredentialsError,
    InvalidInputError,
    RateLimitedError,
    RejectedError,
    RemoteError,
    TransientError,
)
from config.http_guard import GuardedSession
from connectors.base import (
    NO_AUTH,
    AuthMethod,
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Cursor,
    Event,
    Failure,
    File,
    Record,
    Settings,
)
from connectors.patterns import is_wanted

_PIECE = 256 * 1024
_IN_MEMORY = 2 * 1024 * 1024
_TIMEOUT_S = (10.0, 60.0)
_ATTEMPTS = 4
_PAGE = 1000
_ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
_REFUSED = frozenset(
    {
        "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AuthFailure",
        "TokenRefreshRequired", "InvalidClientTokenId", "NotSignedUp",
    }
)  # fmt: skip
_BUSY = frozenset({"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded"})
_REASONS = {
    "AccessDenied": "does not allow this key to read here",
    "NoSuchBucket": "has no such bucket",
    "NoSuchKey": "has this no longer",
    "InvalidObjectState": "has this in an archive; restore it there first",
    "RequestTimeTooSkewed": "finds that the clock of this server is wrong",
    "PermanentRedirect": "has the bucket in another region",
    "AuthorizationHeaderMalformed": "has the bucket in another region",
}


class S3Config(Settings):
    """Which bucket, and which of its objects."""

    bucket: str = Field(title="Bucket", min_length=1)
    endpoint_url: str = Field(
        default="",
        title="Endpoint",
        description="Address of the store, such as https://minio.example.com; empty: Amazon.",
        pattern="^(https?://.+)?$",
    )
    region: str = Field(default="us-east-1", title="Region")
    path_style: bool = Field(
        default=False,
        title="Bucket in the path",
        description="Many stores outside Amazon need it: host/bucket instead of bucket.host.",
    )
    prefixes: list[str] = Field(
        default=[], title="Prefixes", description="Such as handbook/; empty: the whole bucket."
    )
    include: list[str] = Field(
        default=[], title="Only these", description="Patterns such as *.pdf; empty: everything."
    )
    exclude: list[str] = Field(
        default=[], title="Not these", description="Patterns such as *.tmp or archive/*."
    )


class AccessKey(Settings):
    """A key pair that may list the bucket and read its objects."""

    key_id: str = Field(title="Access key id", min_length=1)
    secret: SecretStr = Field(title="Secret access key", min_length=1)
    session_token: SecretStr = Field(
        default=SecretStr(""), title="Session token", description="Of temporary keys only."
    )


class S3Connector(Connector[S3Config]):
    """Lists the whole bucket each time, a thousand keys a request; objects are read when their tag has
    changed. Keys come in order, so a run that broke off goes on behind the last one."""

    spec = ConnectorSpec(
        kind="s3",
        name="Amazon S3",
        description="Files in a bucket of Amazon S3, MinIO, Ceph, R2 or another compatible store.",
        category=Category.FILES,
        config=S3Config,
        auth=(
            AuthMethod("key", "Access key", AccessKey, "It needs s3:ListBucket and s3:GetObject."),
            NO_AUTH,
        ),
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS, Capability.FILES}),
        documentation_url="https://docs.aws.amazon.com/AmazonS3/latest/API/",
    )

    def check(self) -> str:
        """The bucket, when it can be listed."""
        client = self._client()
        page = self._page(client, self._prefixes()[0], "")
        more = "at least " if page.get("IsTruncated") else ""
        return f"{self.config.bucket}: {more}{page.get('KeyCount', 0)} objects"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Every object, from where a run broke off."""
        yield from self._listing(self._client(), str(cursor.get("after", "")))
        yield Checkpoint({})
        yield Complete()

    def _listing(self, client: Any, after: str) -> Iterator[Event]:
        for prefix in self._prefixes():
            last = after
            for number in count(1):
                self.context.pause(0)
                page = self._page(client, prefix, last)
                found = page.get("Contents", [])
                yield from self._events(client, found)
                if not found:
                    break
                if found[-1]["Key"] <= last:
                    raise RejectedError("The store lists the same objects again and again.")
                last = found[-1]["Key"]
                yield Checkpoint({"after": last})
                if not page.get("IsTruncated"):
                    break
                self.context.log.debug("Page %s of %s", number, self.config.bucket)

    def _page(self, client: Any, prefix: str, after: str) -> dict[str, Any]:
        # By key and not by continuation token: tokens expire, and a run may go on a day later.
        place = {"StartAfter": after} if after else {}
        with self._translated():
            page: dict[str, Any] = client.list_objects_v2(
                Bucket=self.config.bucket, Prefix=prefix, MaxKeys=_PAGE,
                OptionalObjectAttributes=["RestoreStatus"], **place,
            )  # fmt: skip
        return page

    def _prefixes(self) -> list[str]:
        """In the order of keys, and none that lies in another one."""
        kept: list[str] = []
        for prefix in sorted(set(self.config.prefixes)) or [""]:
            if not kept or not prefix.startswith(kept[-1]):
                kept.append(prefix)
        return kept

    def _events(self, client: Any, found: list[dict[str, Any]]) -> Iterator[Event]:
        for one in found:
            key = one["Key"]
            is_folder = key.endswith(("/", "_$folder$"))
            if is_folder or not is_wanted(key, self.config.include, self.config.exclude):
                continue
            restored = one.get("RestoreStatus", {}).get("RestoreExpiryDate")
            if one.get("StorageClass") in _ARCHIVES and not restored:
                message = (
                    f"Archived ({one['StorageClass']}); restore it in the store to have it read."
                )
                yield Failure(key, message)
            else:
                yield self._record(client, one)

    def _record(self, client: Any, one: dict[str, Any]) -> Record:
        key, size = one["Key"], int(one["Size"])
        name = PurePosixPath(key).name or key
        return Record(
            external_id=key,
            title=PurePosixPath(name).stem,
            body=File(partial(self._opened, client, key), name, size=size),
            version=f"{one.get('ETag', one['LastModified'])}-{size}",
            breadcrumbs=[part for part in key.split("/")[:-1] if part],
            updated_at=one["LastModified"],
            metadata={"bucket": self.config.bucket, "key": key},
        )

    @contextmanager
    def _opened(self, client: Any, key: str) -> Iterator[BinaryIO]:
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
            with self._translated():
                answer = client.get_object(Bucket=self.config.bucket, Key=key)
                with closing(answer["Body"]) as body:
                    self._copy(body, cast(BinaryIO, file))
            file.seek(0)
            yield cast(BinaryIO, file)

    def _copy(self, body: Any, file: BinaryIO) -> None:
        size = 0
        for piece in body.iter_chunks(_PIECE):
            self.context.pause(0)
            size += len(piece)
            if size > self.context.max_bytes:
                raise RejectedError(f"Larger than {self.context.max_bytes // 1024 // 1024} MB.")
            file.write(piece)

    # --- the client ----------------------------------------------------------------------------

    def _client(self) -> Any:
        keys = self.credentials
        signed = isinstance(keys, AccessKey)
        config = Config(
            signature_version="s3v4" if signed else UNSIGNED,
            s3={"addressing_style": "path" if self.config.path_style else "auto"},
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            # Nothing of the operator's own environment: neither proxies nor endpoints nor keys.
            proxies={}, ignore_configured_endpoint_urls=True,
        )  # fmt: skip
        secrets = {}
        if isinstance(keys, AccessKey):
            secrets = {
                "aws_access_key_id": keys.key_id,
                "aws_secret_access_key": keys.secret.get_secret_value(),
                "aws_session_token": keys.session_token.get_secret_value() or None,
            }
        try:
            client = boto3.session.Session().client(
                "s3", region_name=self.config.region, config=config,
                endpoint_url=self.config.endpoint_url or None, **secrets,
            )  # fmt: skip
        except (BotoCoreError, ValueError) as error:
            raise InvalidInputError("The endpoint or the region is not an address.") from error
        client.meta.events.register("before-send.s3", _sender())
        return client

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of the library as ours. They name the store and a code, never a key."""
        try:
            yield
        except ClientError as error:
            raise self._error_of(error) from error
        except (ParamValidationError, NoCredentialsError) as error:
            raise InvalidInputError(
                "The name of the bucket, or the key, cannot be right."
            ) from error
        except HTTPClientError as error:
            raise TransientError(f"{self._store} cannot be reached.") from error
        except (BotoCoreError, requests.RequestException, OSError) as error:
            raise TransientError(f"{self._store} broke off its answer.") from error

    def _error_of(self, error: ClientError) -> RemoteError:
        answer = error.response
        code = str(answer.get("Error", {}).get("Code", ""))
        status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code in _REFUSED or status == 401:
            return CredentialsError(f"{self._store} does not accept the access key ({code}).")
        if code in _BUSY or status == 429:
            return RateLimitedError(f"{self._store} asks to slow down.")
        if status >= 500 or code == "RequestTimeout":
            return TransientError(f"{self._store} has a problem of its own ({code}).")
        reason = _REASONS.get(code, "refuses the request")
        return RejectedError(f"{self._store} {reason} ({code}).", status=status)

    @property
    def _store(self) -> str:
        return self.config.endpoint_url or "Amazon S3"


def _sender() -> Any:
    """Sends a request as the rest of the product does: private addresses are refused, whatever host the
    library has made of endpoint, bucket and redirects. See "before-send" in botocore/endpoint.py."""
    session = GuardedSession(())

    def send(request: Any, **_: Any) -> AWSResponse:
        prepared = requests.PreparedRequest()
        prepared.prepare(request.method, request.url, request.headers, data=request.body)
        # Exactly as signed.
        prepared.url, prepared.headers = request.url, CaseInsensitiveDict(request.headers)
        try:
            answer = session.send(prepared, stream=True, timeout=_TIMEOUT_S, allow_redirects=False)
        except InvalidIPAddress as error:
            raise RejectedError(
                "The store lies in a private network. The operator can open it with "
                "GROUNDWORK_PRIVATE_HOSTS."
            ) from error
        except requests.RequestException as error:
            raise HTTPClientError(error=error) from error  # which the library tries again
        return AWSResponse(request.url, answer.status_code, answer.raw.headers, answer.raw)

    return send
