"""Runs of agents that go on by guidance that has changed are held, or ended."""
