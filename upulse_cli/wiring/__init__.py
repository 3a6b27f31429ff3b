"""Which adapters are real: the one place that joins the core to this machine."""
