"""uv takes packages from where pip is told to take them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import indexes

LOCKED = "boto3==1.2.3 \\\n    --hash=sha256:0\nPyYAML==6.0 ; python_version >= '3.9' \\\n    --hash=sha256:1\n"


def environment(listed: str, **environ: str) -> dict[str, str]:
    """What uv gets beside the two things that are the same for all."""
    told = indexes.for_uv(listed, LOCKED, {"SSL_CERT_FILE": "/ca", **environ})
    assert told.refused == ""
    assert told.environment.pop("UV_INDEX_STRATEGY") == "unsafe-best-match"
    return {name: value for name, value in told.environment.items() if name != "SSL_CERT_FILE"}


def test_each_option_becomes_a_variable_and_no_address_an_argument() -> None:
    listed = (
        "global.index-url='https://user:secret@mirror.example/simple'\n"
        "global.extra-index-url='file:///a/simple\\nfile:///b/simple'\n"
        "global.find-links='/wheels /more'\n"
        "global.trusted-host='mirror.example'\n"
        "global.proxy='http://proxy.example:3128'\n"
        ":env:.disable-pip-version-check='1'\n"
    )
    assert environment(listed) == {
        "UV_DEFAULT_INDEX": "https://user:secret@mirror.example/simple",
        "UV_INDEX": "file:///a/simple file:///b/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INSECURE_HOST": "mirror.example",
        "ALL_PROXY": "http://proxy.example:3128",
    }
    assert indexes.for_uv(listed, LOCKED, {}).arguments == []


def test_what_pip_holds_for_more_comes_first() -> None:
    listed = ":env:.index-url='https://c'\nglobal.index-url='https://a'\ninstall.index-url='https://b'\n"
    assert environment(listed) == {"UV_DEFAULT_INDEX": "https://c"}
    assert environment(listed.partition("\n")[2]) == {"UV_DEFAULT_INDEX": "https://b"}
    assert environment("download.index-url='https://d'\n") == {}


def test_no_index_holds_for_uv() -> None:
    assert indexes.for_uv(":env:.no-index='1'\n", LOCKED, {}).arguments == ["--no-index"]
    assert indexes.for_uv(":env:.no-index='0'\n", LOCKED, {}).arguments == []


def test_what_somebody_told_uv_itself_holds() -> None:
    told = {"UV_DEFAULT_INDEX": "https://own"}
    assert environment("global.index-url='https://a'\nglobal.find-links='/wheels'\n", **told) == told


def test_certificates_are_those_of_pip_then_of_requests() -> None:
    listed = "global.cert='/site.pem'\n"
    requests = {"REQUESTS_CA_BUNDLE": "/requests.pem"}
    assert indexes.for_uv(listed, LOCKED, requests).environment["SSL_CERT_FILE"] == "/site.pem"
    assert indexes.for_uv("", LOCKED, requests).environment["SSL_CERT_FILE"] == "/requests.pem"
    assert indexes.for_uv(listed, LOCKED, {"SSL_CERT_FILE": "/own"}).environment["SSL_CERT_FILE"] == "/own"


@pytest.mark.parametrize("option", ["no-binary", "keyring-provider", "target", "use-feature"])
def test_an_option_that_uv_lacks_leaves_it_to_pip(option: str) -> None:
    assert option in indexes.for_uv(f"global.{option}='x'\n", LOCKED, {}).refused


def test_constraints_of_a_locked_package_leave_it_to_pip(tmp_path: Path) -> None:
    file = tmp_path / "constraints.txt"
    listed = f"global.constraint='{file}'\n"
    file.write_text("# a cap\ntorch<=2.14.1\n", encoding="utf-8")
    assert indexes.for_uv(listed, LOCKED, {}).refused == ""
    for line in ("pyyaml<6", "Boto3==1", "-c other.txt"):
        file.write_text(f"torch<=2.14.1\n{line}\n", encoding="utf-8")
        assert "constraints" in indexes.for_uv(listed, LOCKED, {}).refused
    assert "constraints" in indexes.for_uv("global.constraint='https://h/c.txt'\n", LOCKED, {}).refused
