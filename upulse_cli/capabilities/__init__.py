"""The commands of capabilities: a package NAME for each that has any, with `add_to(app)`."""
