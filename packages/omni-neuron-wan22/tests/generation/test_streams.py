"""Standard output belongs to the result. In a process of its own, where the streams are the real ones."""

import subprocess
import sys

import pytest

from omni_neuron.wan22.generation.streams import say, undecorate

BODY = """
import os, subprocess, sys
from omni_neuron.wan22.generation.streams import say, stdout_for_result

with stdout_for_result() as print_result:
    print("from python")
    os.write(1, b"from below\\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    say("a message")
    {last}
print("afterwards")
"""


def run(last):
    return subprocess.run(
        [sys.executable, "-c", BODY.format(last=last)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_only_the_result_reaches_standard_output():
    finished = run('print_result(\'{"a": "ü"}\')')
    assert finished.stdout == '{"a": "ü"}\n'
    said = ["a message", "afterwards", "from a child", "from below", "from python"]
    assert sorted(finished.stderr.splitlines()) == said


def test_a_failure_leaves_standard_output_empty():
    finished = run("raise RuntimeError('stopped')")
    assert finished.stdout == ""
    assert finished.stderr.splitlines()[-1] == "RuntimeError: stopped"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_the_prefix_that_a_worker_in_this_process_leaves_is_taken_off(name, capsys):
    stream = getattr(sys, name)
    plain = stream.write
    stream.write = lambda text: plain(f"(worker) {text}")
    print("before", file=stream)
    undecorate()
    print("after", file=stream)
    assert getattr(capsys.readouterr(), name[3:]).splitlines()[-1] == "after"


def test_messages_go_to_standard_error(capsys):
    say("a message")
    assert capsys.readouterr() == ("", "a message\n")
