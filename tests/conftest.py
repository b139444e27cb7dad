"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long one example takes says how busy the machine is, and nothing of the code.
settings.register_profile("trainium", deadline=None)
settings.load_profile("trainium")
