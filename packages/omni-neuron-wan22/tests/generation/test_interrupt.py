"""Ctrl-C, in a process of its own: once while its body can stop, once while it cannot."""

import signal
import subprocess
import sys
import time

SCRIPT = """
import sys, threading, time
from omni_neuron.wan22.generation import interrupt

interrupt.PATIENCE_S = 1.0
busy = sys.argv[1] == "busy"
with interrupt.prompt_interrupt():
    if busy:
        threading.Thread(target=time.sleep, args=(60,)).start()
    print("ready", flush=True)
    time.sleep(60)
"""


def interrupted(kind):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, kind], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    return process.returncode, err, time.monotonic() - start


def test_a_body_that_can_stop_gets_the_exception():
    status, err, _ = interrupted("idle")
    assert status == -signal.SIGINT  # what Python makes of a KeyboardInterrupt that nobody catches
    assert err.splitlines()[-1] == "KeyboardInterrupt"


def test_a_thread_that_computes_does_not_hold_the_process():
    status, err, seconds = interrupted("busy")
    assert status == 130
    assert err.splitlines()[-1] == "omni-neuron generate: interrupted"
    assert seconds < 10
