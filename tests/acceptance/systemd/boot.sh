#!/bin/sh
# Boots systemd as PID 1 of its own namespaces over an overlay of /, so that nothing it does reaches this machine.
#
#   boot.sh outside STATE CGROUP [PATH...]    boots; lives as long as the machine
#   boot.sh remove STATE CGROUP               kills what is left in the cgroup, and removes it
#
# STATE is an empty directory, CGROUP the name of a new cgroup. Each PATH is shown inside, read-only; it is
# for what an overlay of / does not show (other file systems) or what /tmp and /run hide.
# Both must be started in a mount namespace of their own, with private propagation.
set -eu
stage=$1 state=$2 cgroup=$3
shift 3
root=$state/root

outside() {
    mount -t tmpfs -o mode=0755 machine "$state"
    mkdir "$state/upper" "$state/work" "$root" "$state/cgroup"
    mount -t overlay -o "lowerdir=/,upperdir=$state/upper,workdir=$state/work" machine "$root"
    # Its own cgroup becomes the root of its cgroup namespace.
    mount -t cgroup2 cgroup2 "$state/cgroup"
    mkdir "$state/cgroup/$cgroup"
    echo $$ >"$state/cgroup/$cgroup/cgroup.procs"
    exec unshare --pid --fork --kill-child --mount --uts --ipc --net --cgroup -- \
        sh "$0" inside "$state" "$cgroup" "$@"
}

inside() {
    kernel
    devices
    mount -t tmpfs -o mode=0755 tmpfs "$root/run"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    for path in "$@"; do show "$path"; done
    quiet
    cd "$root"
    pivot_root . mnt
    umount --lazy /mnt
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin container=pulse \
        setpriv --bounding-set -sys_time,-sys_module \
        chroot / /lib/systemd/systemd --system --unit=machine.target --show-status=no
}

kernel() {
    mount -t proc proc "$root/proc"
    # Sysctls that have no namespace are this machine's.
    mount --bind "$root/proc/sys" "$root/proc/sys"
    mount -o remount,bind,ro "$root/proc/sys"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
}

devices() {
    mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
    for device in null zero full random urandom tty; do
        touch "$root/dev/$device"
        mount --bind "/dev/$device" "$root/dev/$device"
    done
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s pts/ptmx "$root/dev/ptmx"
}

show() {
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
}

# Only what a service needs to start: nothing that this machine has enabled, no generators, no slow first steps.
quiet() {
    rm -rf "$root"/etc/systemd/system/*.wants "$root"/usr/lib/systemd/system-generators/* "$root/var/log/journal"
    : >"$root/etc/fstab"
    tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
    mkdir -p "$root/etc/systemd/system" "$root/etc/systemd/journald.conf.d" "$root/srv" "$root/mnt"
    printf '[Journal]\nStorage=volatile\nForwardToConsole=no\n' >"$root/etc/systemd/journald.conf.d/machine.conf"
    printf '[Unit]\nRequires=basic.target dbus.socket\nAfter=basic.target dbus.socket\nAllowIsolate=yes\n' \
        >"$root/etc/systemd/system/machine.target"
    for unit in systemd-udevd.service systemd-udev-trigger.service systemd-tmpfiles-setup-dev.service \
        systemd-sysctl.service systemd-modules-load.service systemd-binfmt.service kmod-static-nodes.service \
        systemd-random-seed.service systemd-journal-flush.service systemd-update-utmp.service \
        systemd-firstboot.service systemd-machine-id-commit.service systemd-repart.service \
        systemd-journald-audit.socket systemd-udevd-control.socket systemd-udevd-kernel.socket \
        proc-sys-fs-binfmt_misc.automount sys-fs-fuse-connections.mount sys-kernel-config.mount \
        sys-kernel-debug.mount sys-kernel-tracing.mount dev-hugepages.mount dev-mqueue.mount; do
        ln -sf /dev/null "$root/etc/systemd/system/$unit"
    done
}

remove() {
    mount -t cgroup2 cgroup2 "$state"
    [ -d "$state/$cgroup" ] || return 0
    echo 1 >"$state/$cgroup/cgroup.kill"
    for attempt in $(seq 200); do
        find "$state/$cgroup" -depth -type d -exec rmdir {} \; 2>/dev/null
        [ -d "$state/$cgroup" ] || return 0
        sleep 0.02
    done
    echo "cgroup $cgroup cannot be removed" >&2
    return 1
}

"$stage" "$@"
