"""What is left out of the engine's log, and that nothing else is."""

import logging

import pytest

from omni_neuron.platform.engine_log import SAYINGS, silence_other_devices


@pytest.mark.parametrize("name", SAYINGS)
def test_a_saying_is_left_out_and_everything_else_of_its_logger_is_heard(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    silence_other_devices()
    silence_other_devices()
    logger = logging.getLogger(name)
    assert sum(type(each).__name__ == "_Silence" for each in logger.filters) == 1
    logger.addHandler(caplog.handler)  # vLLM's loggers do not pass on to the root
    try:
        for saying in SAYINGS[name]:
            logger.warning("%s", "a real warning")
            logger.warning(saying + ": %s", "because")
            logger.error("no memory, although " + saying)
    finally:
        logger.removeHandler(caplog.handler)
    heard = {record.getMessage() for record in caplog.records}
    assert heard == {"a real warning", *(f"no memory, although {saying}" for saying in SAYINGS[name])}
