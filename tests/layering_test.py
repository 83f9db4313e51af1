"""Checks that dependencies point down only: every #include of one of our headers against the CMakeLists.txt files, and those
against the order of the folders.

A file may include what its library declares in DEPS or PRIVATE_DEPS, and what those libraries declare in DEPS,
and so on. A header belongs to the library that compiles the .cc or .proto file of its name; one without such a
file stands for any library of its folder. No library depends on itself, or on a folder that stands above its own
in FOLDERS or beside it, and no source file is left out of the build.

Usage: layering_test.py SOURCE_DIR
"""

import functools
import pathlib
import re
import sys

# From the bottom up: a folder depends on those before it.
FOLDERS = ("base", "codegen", "proto", "db", "tuner", "laboratory", "command", "process", "worker", "doctor", "server", "web", "mycc_tune", "mycc")
# Pairs that do not know each other.
BESIDE = {("server", "worker"), ("server", "doctor"), ("web", "worker"), ("mycc", "mycc_tune")}
KEYWORDS = {"NAME", "SRCS", "DEPS", "PRIVATE_DEPS", "GRPC", "PUBLIC", "PRIVATE"}


class Library:
    def __init__(self):
        self.folders, self.stems, self.public, self.private = set(), set(), set(), set()


def arguments(text):
    """`NAME a SRCS b c` as {"": [], "NAME": ["a"], "SRCS": ["b", "c"]}."""
    found, key = {"": []}, ""
    for word in text.split():
        key = word if word in KEYWORDS else key
        found.setdefault(key, [])
        if word not in KEYWORDS:
            found[key].append(word)
    return found


def read_libraries(root):
    libraries = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("CMakeLists.txt")):
            text = re.sub(r"#.*", "", path.read_text())
            for command, body in re.findall(r"^(\w+)\(([^()]*)\)", text, re.M):
                words = arguments(body)
                plain = words[""]
                if command in ("mycc_library", "mycc_proto_library"):
                    name, sources = words["NAME"][0], words["SRCS"]
                elif command == "add_executable" or (command == "add_library" and "STATIC" in plain):
                    name, sources = plain[0], [word for word in plain[1:] if word != "STATIC"]
                elif command == "target_link_libraries" and plain[0] in libraries:
                    libraries[plain[0]].private |= set(words.get("PRIVATE", []))
                    continue
                else:
                    continue
                library = libraries.setdefault(name, Library())
                library.folders.add(folder)
                library.stems |= {(path.parent / s).relative_to(root).with_suffix("") for s in sources if "$" not in s}
                library.public |= set(words.get("DEPS", []))
                library.private |= set(words.get("PRIVATE_DEPS", []))
    return libraries


def visible_from(libraries, name):
    seen, open_names = set(), libraries[name].public | libraries[name].private
    while open_names:
        dependency = open_names.pop()
        if dependency in libraries and dependency not in seen:
            seen.add(dependency)
            open_names |= libraries[dependency].public
    return seen


def arrows_up(libraries):
    """Declared dependencies on a library of a folder that stands above or beside the user's."""
    for name, library in libraries.items():
        for dependency in sorted((library.public | library.private) & libraries.keys()):
            for user in library.folders:
                for owner in libraries[dependency].folders:
                    if FOLDERS.index(owner) > FOLDERS.index(user) or (user, owner) in BESIDE:
                        yield f"{name} ({user}/) depends on {dependency} ({owner}/), which stands beside or above it"


def owners_of(libraries, file):
    """The libraries that a file, without its suffix, belongs to."""
    return {n for n, l in libraries.items() if file in l.stems} or {
        n for n, l in libraries.items() if any(stem.parent == file.parent for stem in l.stems)}


@functools.cache
def sources_named_in(folder):
    """The names of the .cc files in a folder's CMake files."""
    files = [*folder.glob("CMakeLists.txt"), *folder.glob("*.cmake")]
    return {name for file in files for name in re.findall(r"[\w-]+\.cc\b", file.read_text())}


def unbuilt(root):
    """Source files that no CMake file of their folder, or of one above it, names."""
    for folder in (*FOLDERS, "tests"):
        for path in sorted((root / folder).rglob("*.cc")):
            if not any(path.name in sources_named_in(p) for p in path.parents if p.is_relative_to(root)):
                yield f"{path.relative_to(root)}: no CMakeLists.txt names it"


def main():
    root = pathlib.Path(sys.argv[1])
    libraries = read_libraries(root)
    visible = {name: visible_from(libraries, name) for name in libraries}
    faults = [f"{name}: depends on itself" for name in libraries if name in visible[name]]
    faults += arrows_up(libraries)
    includes = 0
    for folder in FOLDERS:
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in (".h", ".cc")):
            file = path.relative_to(root)
            users = owners_of(libraries, file.with_suffix(""))
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = re.match(r'#include "((?:%s)/.*)\.h"' % "|".join(FOLDERS), line)
                if not match:
                    continue
                includes += 1
                header = pathlib.Path(re.sub(r"(\.grpc)?\.pb$", "", match[1]))
                owners = owners_of(libraries, header)
                if not any(owner == user or owner in visible[user] for user in users for owner in owners):
                    faults.append(f"{file}:{number}: {'/'.join(sorted(users))} does not depend on "
                                  f"{'/'.join(sorted(owners)) or header}")
    faults += unbuilt(root)
    print("\n".join(faults))
    print(f"{len(libraries)} libraries, {includes} includes, {len(faults)} faults")
    return 1 if faults or includes < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
