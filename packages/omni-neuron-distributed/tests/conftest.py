"""Properties are judged by their result: a busy machine may take its time."""

from hypothesis import HealthCheck, settings

settings.register_profile("distributed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("distributed")
