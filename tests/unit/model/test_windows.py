"""A window of samples, as rules look into it."""

from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window

DISKS = {"/": {"used": 0.5}, "/mnt/x": {"used": 0.25}, "/mnt/x.old": {"used": 0.125}}


def test_the_name_of_a_vital_is_the_name_that_rules_use() -> None:
    window = Window((Sample(1, "system-resource", Moment(0, "b", 0), {"memory": 0.75, "disks": DISKS}),))
    assert window.values("memory") == (0.75,)
    assert window.values("disks./.used") == (0.5,)
    assert window.values("disks./mnt/x.used") == (0.25,)
    assert window.values("disks./mnt/x.old.used") == (0.125,)
    assert window.values("disks./mnt/y.used") == window.values("memory.used") == ()
