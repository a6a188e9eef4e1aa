"""Credentials for S3: from where the aws command finds them, renewed, and shown nowhere."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import Aws, at, endpoint, fault, signed
from conftest import numbered, write_tar
from http_servers import Answer, Request, StandIn, free_port, ranged, stand_in

URL = "s3://bkt/a.tar"
SAMPLES = 20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    return write_tar(path, numbered(0, SAMPLES)).read_bytes()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without files of aws, and an environment without AWS_*; no machine of AWS."""
    for name in os.environ:
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_REGION", "eu-test-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (tmp_path / ".aws").mkdir()
    return tmp_path


@pytest.fixture
def aws(data: bytes) -> Aws:
    return Aws.of(data)


@pytest.fixture
def server(aws: Aws, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """All services of AWS, where the environment says that they are."""
    assert home.exists()
    with stand_in(aws) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint(server))
        yield server


def count(url: str = URL, **options: Any) -> int:
    return len(list(shardfeed.Stream(url, **options)))


def configure(home: Path, text: str, credentials: str = "") -> None:
    (home / ".aws/config").write_text(text)
    (home / ".aws/credentials").write_text(credentials)


def refusal(expected: type[shardfeed.Error], match: str, url: str = URL, **options: Any) -> str:
    """The message, in which nothing is secret."""
    with pytest.raises(expected, match=match) as caught:
        count(url, **options)
    said = str(caught.value) + repr(caught.value)
    assert "hush" not in said
    return said


SOURCE = "[source]\naws_access_key_id = SRC\naws_secret_access_key = hush-SRC\n"
ROLE = "[profile r]\nrole_arn = arn:r\n"

# ---- Where they come from -----------------------------------------------------------------------


@pytest.mark.usefixtures("server")
def test_environment(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-ENV")
    assert count() == SAMPLES
    assert aws.signers == [("ENV", "")]
    monkeypatch.setenv("AWS_SESSION_TOKEN", "hush-t")
    assert count() == SAMPLES
    assert aws.signers == [("ENV", ""), ("ENV", "hush-t")]
    assert all(signed(request).region == "eu-test-1" for request in aws.asked)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    refusal(shardfeed.AuthError, "AWS_SECRET_ACCESS_KEY is not")


@pytest.mark.usefixtures("server")
def test_options_and_profiles_before_the_environment(
    aws: Aws, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-ENV")
    configure(home, "", SOURCE)
    keys = {"s3_access_key": "OPT", "s3_secret_key": "hush-OPT", "s3_session_token": "hush-o"}
    assert count(**keys) == SAMPLES
    assert count(s3_profile="source") == SAMPLES
    assert aws.signers == [("OPT", "hush-o"), ("SRC", "")]
    refusal(shardfeed.AuthError, 'no profile "other"', s3_profile="other")
    refusal(shardfeed.UsageError, "s3_secret_key is missing", s3_access_key="OPT")


@pytest.mark.usefixtures("server")
def test_files_that_change_are_read_again(aws: Aws, home: Path) -> None:
    configure(home, "", SOURCE.replace("source", "default"))
    assert count() == SAMPLES
    configure(home, "", SOURCE.replace("source", "default").replace("SRC", "OTHER"))
    assert count() == SAMPLES
    assert aws.signers == [("SRC", ""), ("OTHER", "")]


@pytest.mark.usefixtures("server")
def test_role_of_another_profile(aws: Aws, home: Path) -> None:
    more = "source_profile = source\nexternal_id = e x/+\nrole_session_name = me\n"
    configure(home, ROLE + more + "duration_seconds = 1000\n", SOURCE)
    assert count(s3_profile="r") == SAMPLES
    assert count(s3_profile="r") == SAMPLES  # by the same keys
    assert aws.signers == [("KEY1", "hush-token1")]
    (asked,) = aws.others
    assert signed(asked).key == "SRC"
    assert signed(asked).region == "eu-test-1"
    wanted = {"Action": "AssumeRole", "RoleArn": "arn:r", "RoleSessionName": "me"}
    wanted |= {"ExternalId": "e x/+", "DurationSeconds": "1000", "Version": "2011-06-15"}
    assert aws.form == wanted


@pytest.mark.usefixtures("server")
def test_role_of_a_role(aws: Aws, home: Path) -> None:
    first = "[profile q]\nrole_arn = arn:q\nsource_profile = source\n"
    configure(home, ROLE + "source_profile = q\n" + first, SOURCE)
    assert count(s3_profile="r") == SAMPLES
    assert [(signed(r).key, signed(r).token) for r in aws.others] == [
        ("SRC", ""),
        ("KEY1", "hush-token1"),
    ]
    assert aws.signers == [("KEY2", "hush-token2")]


@pytest.mark.parametrize("source", ["Environment", "EcsContainer", "Ec2InstanceMetadata"])
def test_role_of_another_source(
    aws: Aws, server: StandIn, home: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    configure(home, ROLE + f"credential_source = {source}\n")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-ENV")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url("container"))
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush-container")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint(server))
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    assert count(s3_profile="r") == SAMPLES
    by = signed(aws.others[-1])
    token = aws.others[-1].headers.get("x-amz-security-token", "")
    assert (by.key, token) == (("ENV", "") if source == "Environment" else ("KEY1", "hush-token1"))
    last = aws.given
    assert aws.signers == [(f"KEY{last}", f"hush-token{last}")]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "source_profile or credential_source"),
        ("source_profile = source\ncredential_source = Environment\n", "not both"),
        ("credential_source = Elsewhere\n", "none of Environment"),
        ("source_profile = none\n", "no keys to assume"),
        ("source_profile = s\n[profile s]\nrole_arn=a\nsource_profile=r\n", "leads back"),
        ("source_profile = source\nmfa_serial = 7\n", "mfa_serial"),
        ("source_profile = source\nrole_arn = arn:refused\n", "403 AccessDenied: no .request r7"),
    ],
)
def test_roles_that_cannot_be_assumed(home: Path, more: str, said: str) -> None:
    configure(home, ROLE + more, SOURCE)
    refusal(shardfeed.AuthError, said, s3_profile="r")


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("profile", [None, "r"])
def test_web_identity(
    aws: Aws, home: Path, monkeypatch: pytest.MonkeyPatch, profile: str | None
) -> None:
    token = "hush." + "x" * 3000  # too long for one packet
    (home / "token").write_text(token + "\n")
    if profile:
        configure(home, ROLE + f"web_identity_token_file = {home}/token\n")
        monkeypatch.setenv("AWS_PROFILE", profile)
    else:
        monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(home / "token"))
        monkeypatch.setenv("AWS_ROLE_ARN", "arn:r")
    assert count() == SAMPLES
    assert aws.signers == [("KEY1", "hush-token1")]
    assert aws.form["WebIdentityToken"] == token
    assert aws.form["RoleArn"] == "arn:r"
    (home / "token").unlink()
    monkeypatch.setenv("AWS_ROLE_SESSION_NAME", "new")  # no keys are known for that
    refusal(shardfeed.AuthError, "there is no file")


SIGN_ON = "sso_account_id = 12\nsso_role_name = my role\n"


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("session", [True, False])
def test_single_sign_on(aws: Aws, home: Path, session: bool) -> None:
    if session:
        text = "[profile s]\nsso_session = one\n" + SIGN_ON
        text += "[sso-session one]\nsso_region = eu-test-1\nsso_start_url = https://start\n"
    else:
        text = "[profile s]\nsso_start_url = https://start\nsso_region = eu-test-1\n" + SIGN_ON
    configure(home, text)
    name = hashlib.sha1(b"one" if session else b"https://start").hexdigest()
    cached = home / f".aws/sso/cache/{name}.json"
    refusal(shardfeed.AuthError, "aws sso login --profile s", s3_profile="s")
    cached.parent.mkdir(parents=True)
    cached.write_text(json.dumps({"accessToken": "hush-bearer", "expiresAt": at(-5)}))
    refusal(shardfeed.AuthError, "aws sso login --profile s", s3_profile="s")
    cached.write_text(json.dumps({"accessToken": "hush-other", "expiresAt": at(600)}))
    refusal(shardfeed.AuthError, "answers 401", s3_profile="s")
    cached.write_text(json.dumps({"accessToken": "hush-bearer", "expiresAt": at(600)}))
    assert count(s3_profile="s") == SAMPLES
    assert aws.signers == [("KEY1", "hush-token1")]


@pytest.mark.parametrize("in_file", [True, False])
def test_container(
    aws: Aws, server: StandIn, home: Path, monkeypatch: pytest.MonkeyPatch, in_file: bool
) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url("container"))
    refusal(shardfeed.AuthError, "container's credentials: the server answers 403")
    if in_file:
        (home / "token").write_text("hush-container\n")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(home / "token"))
    else:
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush-container")
    assert count() == SAMPLES
    assert aws.signers == [("KEY1", "hush-token1")]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    "url",
    ["http://example.com/c", "http://127.0.0.1@example.com/c", "http://localhost.x/", "ftp://h/"],
)
def test_container_elsewhere(aws: Aws, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url)
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush-container")
    refusal(shardfeed.UsageError, "AWS_CONTAINER_CREDENTIALS_FULL_URI is not https")
    assert not aws.asked


def test_machine(aws: Aws, server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint(server))
    refusal(shardfeed.AuthError, "no credentials for S3 were found")
    assert not aws.others
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    assert count() == SAMPLES
    assert aws.signers == [("KEY1", "hush-token1")]
    assert [request.method for request in aws.others] == ["PUT", "GET", "GET"]


@pytest.mark.usefixtures("server")
def test_no_machine_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    refusal(shardfeed.AuthError, "no credentials for S3 were found")


def test_a_machine_that_says_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home.exists()
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    with stand_in(lambda _: Answer(body=b"x", cut=0, end="stall")) as silent:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint(silent))
        start = time.monotonic()
        for _ in range(3):  # remembered
            refusal(shardfeed.AuthError, "no credentials for S3 were found")
        assert time.monotonic() - start < 2


@pytest.mark.usefixtures("server")
def test_program(aws: Aws, home: Path) -> None:
    output = {
        "Version": 1,
        "AccessKeyId": "P",
        "SecretAccessKey": "hush-P",
        "SessionToken": "hush-p",
    }
    (home / "out").write_text(json.dumps(output))
    code = "import sys; print(open(sys.argv[1]).read()); print('hush', file=sys.stderr)"
    command = f'"{sys.executable}" -c "{code}" \'{home}/out\''
    configure(home, f"[profile p]\ncredential_process = {command}\n")
    assert count(s3_profile="p") == SAMPLES
    assert aws.signers == [("P", "hush-p")]
    refusal(shardfeed.UsageError, "refused in secure mode", s3_profile="p", secure=True)
    configure(home, f"[profile p]\ncredential_process = {command}x\n")
    refusal(shardfeed.AuthError, "credential_process fails", s3_profile="p")


@pytest.mark.usefixtures("server")
def test_nothing_is_read_without_credentials_unless_that_was_asked_for(aws: Aws) -> None:
    refusal(shardfeed.AuthError, "s3_anonymous=true")
    assert not aws.asked
    assert count(s3_anonymous=True) == SAMPLES
    assert aws.signers == [("", "")]


# ---- Settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "endpoint_url = {url}\n",
        "services = x\n[services x]\ns3 =\n  endpoint_url = {url}/\n",
        "endpoint_url = http://h\nservices = x\n[services x]\ns3 =\n endpoint_url={url}\n",
    ],
)
def test_endpoints_of_profiles(
    aws: Aws, server: StandIn, home: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.delenv("AWS_REGION")
    profile = "[profile source]\nregion = of-profile-1\n"
    configure(home, profile + text.format(url=endpoint(server)), SOURCE)
    monkeypatch.setenv("AWS_PROFILE", "source")
    assert count() == SAMPLES
    assert {signed(request).region for request in aws.asked} == {"of-profile-1"}
    monkeypatch.setenv("AWS_DEFAULT_REGION", "default-1")
    assert count(URL + "2") == SAMPLES
    assert signed(aws.asked[-1]).region == "default-1"
    assert count(URL + "3", s3_region="option-1") == SAMPLES
    assert signed(aws.asked[-1]).region == "option-1"


def test_files_and_style_elsewhere(
    aws: Aws, server: StandIn, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "mine").write_text("[profile source]\ns3 =\n  addressing_style = virtual\n")
    (home / "keys").write_text(SOURCE)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(home / "mine"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "~/keys")
    # Before the endpoint of all services.
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://s3.localhost:{server.port}")
    assert count(s3_profile="source", allow_private=True) == SAMPLES
    assert aws.asked[0].headers["host"] == f"bkt.s3.localhost:{server.port}"
    assert aws.signers == [("SRC", "")]


# ---- Keys that expire ---------------------------------------------------------------------------


@pytest.fixture
def of_machine(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint(server))
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")


@pytest.mark.usefixtures("of_machine")
@pytest.mark.parametrize("code", ["ExpiredToken", "TokenRefreshRequired"])
def test_keys_that_a_server_calls_expired_are_renewed_once(
    aws: Aws, data: bytes, code: str
) -> None:
    good = ranged(data)

    def s3(request: Request) -> Answer:
        old = request.headers["x-amz-security-token"] == "hush-token1"
        return fault(400, code) if old else good(request)

    aws.s3 = s3
    assert count() == SAMPLES
    assert aws.signers == [("KEY1", "hush-token1"), ("KEY2", "hush-token2")]
    assert aws.given == 2
    aws.s3 = lambda _: fault(400, code)
    refusal(shardfeed.AuthError, code, retries=0)
    assert aws.given <= 5


@pytest.mark.usefixtures("of_machine")
def test_keys_are_renewed_before_they_expire(aws: Aws) -> None:
    aws.lasts = 200
    assert [count(), count(), count()] == [SAMPLES] * 3
    assert aws.signers == [("KEY1", "hush-token1"), ("KEY2", "hush-token2")]
    assert aws.given == 2  # the next attempt is half a minute later


@pytest.mark.usefixtures("of_machine")
def test_keys_near_their_end_are_used_on_when_nobody_renews_them(aws: Aws) -> None:
    aws.lasts = 200
    assert count() == SAMPLES
    aws.broken = True
    assert count() == SAMPLES
    assert aws.signers == [("KEY1", "hush-token1")]
    assert len(aws.others) > 3


@pytest.mark.usefixtures("server")
def test_keys_that_nobody_renews(aws: Aws) -> None:
    aws.s3 = lambda _: fault(400, "ExpiredToken")
    keys = {"s3_access_key": "OPT", "s3_secret_key": "hush-OPT", "s3_session_token": "hush-o"}
    refusal(shardfeed.AuthError, "ExpiredToken", **keys)
    assert len(aws.asked) == 1
