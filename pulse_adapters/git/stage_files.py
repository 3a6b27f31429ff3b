"""Takes the files of a folder into an index. They are opened here, without following links, and git is given their content.

Were git to add the folder, it would visit the repositories that lie in it, and run what their settings name.
"""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from pulse_adapters.git.errors import AnotherRepository, GitFailed, ReservedName, SpecialFile
from pulse_adapters.git.git_command import Git
from pulse_adapters.git.git_files import DEEPEST
from pulse_adapters.workers.plain_file import UNFINISHED, open_plain

MOST_FILES, MOST_BYTES = 10_000, 256 * 2**20
"""Of what changed: more is nobody's code, and a rollback must not wait for it."""
LONGEST = 3_000
"""Bytes of a path within the folder: with the home's in front of it, the kernel must still take it (4,096)."""
_ADVICE = "; list what is no code in .gitignore"
_AT_ONCE = 100
_LINK, _PROGRAM, _FILE, _REPOSITORY = "120000", "100755", "100644", "160000"
_SPECIAL = {
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFBLK: "device",
    stat.S_IFCHR: "device",
}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def stage_files(git: Git, at: Path, index: Path | None = None, also: Collection[str] = ()) -> str:
    """Have an index, the folder's own if no other is named, hold its files but for ignored ones; returns the tree.

    also: names of ignored ones that it is to hold all the same. Raises AnotherRepository, ReservedName, SpecialFile.
    """
    refuse_pipes(at)
    env = {"GIT_INDEX_FILE": str(index)} if index else {}
    others = ("--others", "--exclude-standard", f"--exclude={UNFINISHED}")
    listed = git("ls-files", "-z", "-t", "--stage", "--modified", *others, at=at, env=env)
    folders, changed = set[PurePosixPath](), dict.fromkeys(also, "")
    for line in filter(None, listed.split("\0")):
        tag, entry = line[0], line[2:]
        head, _, name = ("", "", entry) if tag == "?" else entry.partition("\t")
        path = PurePosixPath(name)
        folders |= (
            {path, *path.parents} if name.endswith("/") or head.startswith(_REPOSITORY) else {*path.parents}
        )
        if tag in "?C":
            changed[name] = head.split(" ")[1] if head else ""
    for name in changed:
        if name.count("/") > DEEPEST:
            raise GitFailed(f"{at}/{name[:60]}… is more than {DEEPEST} folders deep{_ADVICE}")
        if len(os.fsencode(name)) > LONGEST:
            raise GitFailed(f"{at}/{name[:60]}… is a path of more than {LONGEST:,} bytes{_ADVICE}")
    for folder in folders:
        if folder.name and os.path.lexists(at / folder / ".git"):
            raise AnotherRepository(at, str(folder), is_committed=False)
    if len(changed) > MOST_FILES:
        raise GitFailed(f"more than {MOST_FILES} files changed in {at}{_ADVICE}")
    if changed:
        words, told = ("update-index", "-z", "--index-info"), "".join(_entries(git, at, changed))
        answer = git.run(*words, at=at, env=env, told=told)
        if answer.exit:
            raise git.failure(words, answer)
        if "Ignoring path " in answer.error:
            raise ReservedName(at, answer.error.split("Ignoring path ", 1)[1].split("\n", 1)[0])
    # Else git takes no file for what it is that was copied since, as into a home that was restored.
    git.run("update-index", "-q", "--refresh", at=at, env=env)
    return git("write-tree", at=at, env=env)


def _entries(git: Git, at: Path, changed: Mapping[str, str]) -> Iterator[str]:
    """What `update-index` is told of these files, with their content stored."""
    names, size = [*changed], 0
    for start in range(0, len(names), _AT_ONCE):
        with ExitStack() as stack:
            found = {name: _opened(stack, at, name) for name in names[start : start + _AT_ONCE]}
            handles = [handle for _, handle in filter(None, found.values())]
            size += sum(os.fstat(handle).st_size for handle in handles)
            if size > MOST_BYTES:
                raise GitFailed(f"what changed in {at} is larger than {MOST_BYTES >> 20} MiB{_ADVICE}")
            told = "".join(f"/dev/fd/{handle}\n" for handle in handles)
            words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
            oids = iter(git(*words, told=told, descriptors=handles).split())
        for name, one in found.items():
            if one:
                yield f"{one[0]} {next(oids)}\t{name}\0"
            elif changed[name]:
                yield f"0 {changed[name]}\t{name}\0"


def _opened(stack: ExitStack, at: Path, name: str) -> tuple[str, int] | None:
    """The mode of a file, and a descriptor of its content, which the stack closes; None if no file or link is there."""
    with ExitStack() as way:
        try:
            folder = os.open(at, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            way.callback(os.close, folder)
            *outer, last = name.split("/")
            for inner in outer:
                folder = os.open(inner, _FOLDER, dir_fd=folder)
                way.callback(os.close, folder)
            mode = os.stat(last, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                handle = open_plain(last, within=folder)
            elif stat.S_ISLNK(mode):
                leads = os.fsencode(os.readlink(last, dir_fd=folder))  # first: it may be gone by now
                handle = os.memfd_create("link")
                os.write(handle, leads)
            else:
                return None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise GitFailed(f"{at / name} can't be read: {error.strerror}") from error
    stack.callback(os.close, handle)
    return (_LINK if stat.S_ISLNK(mode) else _PROGRAM if mode & stat.S_IXUSR else _FILE), handle


def refuse_special_files(git: Git, at: Path) -> None:
    """Raise SpecialFile for the first pipe, socket, device or closed folder in a folder that is not ignored."""
    found = dict(_special_files(at))
    told = "".join(f"{os.path.relpath(path, at)}\0" for path in found)
    ignored = {*git.run("check-ignore", "-z", "--stdin", at=at, told=told).text.split("\0")} if found else ()
    for path, kind in sorted(found.items()):
        if os.path.relpath(path, at) not in ignored:
            raise SpecialFile(Path(path), kind)


def refuse_pipes(at: Path) -> None:
    """Raise SpecialFile for one where git reads what to ignore: it would wait for its other end at every call."""
    for path, kind in _special_files(at):
        if os.path.basename(path) in (".gitignore", ".gitattributes"):
            raise SpecialFile(Path(path), kind)


def _special_files(folder: Path | str) -> Iterator[tuple[str, str]]:
    """The path and kind of each in a folder and those within, but for git's own; what can't be opened is one, too."""
    folders = [os.fspath(folder)]
    while folders:
        path = folders.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != ".git":
                            folders.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                        mode = entry.stat(follow_symlinks=False).st_mode
                        yield entry.path, _SPECIAL.get(stat.S_IFMT(mode), "special file")
        except (FileNotFoundError, NotADirectoryError):
            continue  # somebody else has removed it
        except OSError as error:
            yield path, f"folder that can't be opened ({error.strerror})"


def refuse_repositories(git: Git, tree: str, at: Path) -> None:
    """Raise AnotherRepository if a tree holds one, by a commit of it or by its files."""
    for line in filter(None, git("ls-tree", "-r", "-z", "--full-tree", tree).split("\0")):
        head, _, name = line.partition("\t")
        if head.startswith(_REPOSITORY) or ".git" in name.lower().split("/"):
            raise AnotherRepository(at, name, is_committed=True)
