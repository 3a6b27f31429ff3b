"""A plugin of Pulse, as small as one can be."""
