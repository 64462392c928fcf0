HBM_MEMORY_GB = {"trn2": 24, "trn3": 36}


def get_platform_target():
    return "trn2"
