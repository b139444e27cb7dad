"""Secrets are taken out of logs."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.masks import masked, masked_lines
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("aws_secret_access_key = wJalr/bPx+", "aws_secret_access_key = ****"),
        ('{"SecretAccessKey": "wJalr", "x": 1}', '{"SecretAccessKey": "****", "x": 1}'),
        ("GET /a?X-Amz-Signature=0a1b&X-Amz-Date=1", "GET /a?X-Amz-Signature=****&X-Amz-Date=1"),
        ("Authorization: Bearer abc.def", "Authorization: ****"),
        ("key AKIAIOSFODNN7EXAMPLE used", "key **** used"),
        ("HF_TOKEN=hf_" + "a" * 30, "HF_TOKEN=****"),
        ("login with hf_" + "a" * 30, "login with ****"),
        (
            "Looking in indexes: https://bob:hunter2@pypi.example.com/simple",
            "Looking in indexes: https://****@pypi.example.com/simple",
        ),
        ("git clone https://x-access-token@example.com/a", "git clone https://****@example.com/a"),
        ("github_pat_" + "a" * 30, "****"),
        ("with glpat-" + "a" * 20 + " it", "with **** it"),
        ("xoxb-1234567890-ab", "****"),
        ("sk-" + "a" * 40, "****"),
        ('{"token": "abcd", "x": 1}', '{"token": "****", "x": 1}'),
        ("WANDB_TOKEN=abcd", "WANDB_TOKEN=****"),
        ("https://bob:p@ss@example.com/a", "https://****@example.com/a"),
        ("https://bob:hun/ter2@example.com/a b@c", "https://****@example.com/a b@c"),
        ("Authorization: Token abcdef", "Authorization: ****"),
        ("X-Vault-Token: hvs.abc", "X-Vault-Token: ****"),
        ("npm_" + "a" * 30, "****"),
        ("a jwt eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "a jwt ****"),
        ('"auth": "YTpi"', '"auth": "****"'),
        ("client_secret = abcd", "client_secret = ****"),
        ("https://example.com/a@b", "https://example.com/a@b"),
        ("no secret: a token ring, password-less", "no secret: a token ring, password-less"),
    ],
)
def test_secrets_are_masked(line: str, wanted: str) -> None:
    assert masked(line) == wanted


def test_a_private_key_is_masked() -> None:
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    assert masked_lines(["a", begin, "MIIE", "x==", end, "b"]) == ["a", begin, "****", "****", end, "b"]


def test_a_private_key_whose_beginning_was_cut_off_is_masked() -> None:
    end = "-----END OPENSSH PRIVATE KEY-----"
    begins, whole = "MIIE/b+" * 5, ["2026-01-01 " + "a+b/" * 16, "MII" * 20 + "ab=="]
    assert masked_lines(["a word", *whole, "b+c=", end, "b"]) == ["a word", "****", "****", "****", end, "b"]
    # The first of the lines may be cut as well, where nobody else has seen to that.
    assert masked_lines([begins, end]) == ["****", end]
    assert masked_lines(["a", "-----END CERTIFICATE-----"]) == ["a", "-----END CERTIFICATE-----"]


@given(st.lists(st.text()))
def test_any_text_keeps_its_number_of_lines(lines: list[str]) -> None:
    assert len(masked_lines(lines)) == len(lines)


@given(st.text(alphabet="ABCDEFabcdef0123456789/+", min_size=1))
def test_no_letter_of_a_named_secret_is_left(secret: str) -> None:
    assert masked(f"password={secret} end") == "password=**** end"
