"""Settings that every test shares."""

from hypothesis import settings

# A busy machine is slow, not wrong: an example may take its time.
settings.register_profile("axolotl", deadline=None)
settings.load_profile("axolotl")
