"""A place is told in the words of who wrote the code, whatever it is a place in."""

from pathlib import Path

from pulse_adapters.workers.source_locations import Places, roots_of_plugins


def test_a_place_is_named_by_the_words_of_its_root() -> None:
    places = Places({"/engine": "", "/packages/sample": "sample", "/packages/single.py": "single.py"})
    assert places.named("/engine/rules/night.py", 12) == "rules/night.py:12"
    assert places.named("/packages/sample/deep/own.py", 3) == "sample/deep/own.py:3"
    assert places.named("/packages/single.py", 7) == "single.py:7"
    assert places.named("/engineering/rules.py", 1) == ""


def test_of_a_dump_the_main_thread_comes_first() -> None:
    dump = """Thread 0x1 (most recent call first):
  File "/engine/own.py", line 1 in waits
Current thread 0x2 (most recent call first):
  File "/usr/lib/python3.11/socket.py", line 5 in read
  File "/engine/own.py", line 2 in hangs
"""
    places = Places({"/engine": ""})
    assert places.of_dump(dump) == "own.py:2"
    assert places.of_dump(dump.partition("Current")[0]) == "own.py:1"
    assert places.of_dump("nothing") == ""


def test_where_a_method_is_defined_and_where_nothing_is() -> None:
    places = Places({str(Path(__file__).parent): "here"})
    assert (
        places.of_code(Sample().method)
        == f"here/{Path(__file__).name}:{Sample.method.__code__.co_firstlineno}"
    )
    assert places.of_code(None) == ""


class Sample:
    """Has a method."""

    def method(self) -> None:
        """Do nothing."""


def test_roots_of_plugins_are_found_without_running_them() -> None:
    found = roots_of_plugins({"one": "json.tool:main", "two": "this:that", "gone": "no_such_package:x"})
    assert sorted(found.values()) == ["json", "this.py"]


def test_a_forged_dump_with_an_enormous_line_number_names_no_place() -> None:
    dump = f'Current thread 0x2:\n  File "/engine/own.py", line {"9" * 5_000} in hangs\n'
    assert Places({"/engine": ""}).of_dump(dump) == ""
