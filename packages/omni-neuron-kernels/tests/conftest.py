from hypothesis import HealthCheck, settings

# how long an example takes says more about the host than about the code
settings.register_profile("kernels", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kernels")
