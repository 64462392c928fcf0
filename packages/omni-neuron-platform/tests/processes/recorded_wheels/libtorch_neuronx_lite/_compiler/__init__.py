def device_count():
    return 64


def synchronize():
    pass


def nki_op(name, fn=None, mutates_args=()):
    raise NotImplementedError
