"""What a process prints is told without what looks like a secret."""

import pytest

from pulse_adapters.host.outputs import end_of_output
from pulse_core.model.secret_text import hide_secrets


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the key abcd-1234 is wrong", "the key *** is wrong"),
        ("at /srv/agent in production", "at /srv/agent in production"),
        ("-----\nMIIEfirst\nMIIEsecond\n-----", "-----\n***\n-----"),
        ("unnamed 0123456789abcdef01234567", "unnamed ***"),
        ("postgres://agent:hunter2@db/main", "postgres://***@db/main"),
        ("see http://db:5432/a and b@c", "see http://db:5432/a and b@c"),
        ("Authorization: Bearer eyJhbGciOi.abc", "Authorization: Bearer ***"),
        ('{"api_key": "zzzz-yyyy", "n": 1}', '{"api_key": "***", "n": 1}'),
        ("PASSWORD=correct-horse&x=1", "PASSWORD=***&x=1"),
        ("openai: sk-proj-aaaabbbbcccc", "openai: ***"),
        ("KeyError: 'name'", "KeyError: 'name'"),
        ("1 token", "1 token"),
        ("Bearer  abcdefGHIJ and Bearer\tabcd", "Bearer  *** and Bearer\t***"),
        ("http://user:p@ss:w/ord@host/x and a@b", "http://***@host/x and a@b"),
        ("http://user:pa/ss@host", "http://***@host"),
        (f"postgres://u:{'pw' * 900}@h/db", "postgres://***@h/db"),
        ("http://localhost:4873/@scope/package", "http://localhost:4873/@scope/package"),
        ('{"url":"http://a:80/","mail":"b@c"}', '{"url":"http://a:80/","mail":"b@c"}'),
        ("git+ssh://git@host:team/it.git@v1", "git+ssh://git@host:team/it.git@v1"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"),
        ("authorization: none of these", "authorization: none of these"),
        ("broken abcd-\n1234 and ab\x00cd-12 34.", "broken *** and ***."),
        ('File "/opt/app/main.py", line 3', 'File "/opt/app/main.py", line 3'),
    ],
)
def test_values_that_look_like_secrets_are_hidden(text: str, told: str) -> None:
    given = {
        "API_KEY": "abcd-1234",
        "DIR": "/srv/agent",
        "STAGE": "production",
        "TLS_KEY": "MIIEfirst\nMIIEsecond",
    }
    assert (
        hide_secrets(text, given, {"ID": "0123456789abcdef01234567", "SHORT_TOKEN": "1", "PWD": "/opt/app"})
        == told
    )


def test_hostile_text_takes_no_time_to_search() -> None:
    for piece in ("://", "password: ", "key=", "://a:", "sk-"):
        assert hide_secrets(piece * (16_384 // len(piece)))


def test_the_end_of_an_output_is_told_without_secrets_even_where_it_is_cut() -> None:
    assert end_of_output("x" * 20 + " token=abc123secret is wrong", 14) == "…n=*** is wrong"
    assert end_of_output("password: hunter22\n") == "password: ***"
