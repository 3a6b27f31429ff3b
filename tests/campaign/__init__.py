"""Long campaigns (`make campaign`); their short forms run in `make check`."""
