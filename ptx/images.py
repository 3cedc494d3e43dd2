"""Reads and writes the archives of device images, and knows from which sources a family is made. Standard library only.

    images.py unpack INTO [ARCHIVES]          every image of a folder of archives (images/), as FAMILY.ARCH.ptx or .hsaco
    images.py pack FROM INTO COMPILER FAMILY…  archives and manifests of families, from such files in FROM
    images.py families                        what kernels/src declares
    images.py tuning FAMILY                   what it says of one: "blocks N", "blocks N for ENTRY…", "threads N for ENTRY…"
    images.py finish FAMILY FILE              PTX as rustc leaves it, with what ptxas should know of its blocks
    images.py reach FAMILY                    the sources that a family is made from
    images.py stale                           the families that were made from other sources than are there now
    images.py check                           fails where a checked-in archive is not what its manifest says, or they have
                                              outgrown what they may weigh

An archive is what `ar` calls one, a member for each architecture, compressed by LZMA into what `xz` calls an .lzma file:
`ar p images/take.a sm_75 | xz -dc` is the PTX. A machine runs one architecture, so each is compressed by itself; all of a
family in one stream would be a sixth smaller, and five sixths of what is inflated would be thrown away.
"""

import hashlib
import lzma
import re
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "kernels" / "src"
IMAGES = ROOT / "ptx" / "images"

# The limits in bytes: for the images embedded in a library that uses ours, for the checked-in folder, and for
# one family's archive. A rebuilt archive adds its whole size to git's history, because compressed bytes share
# nothing with the earlier ones.
EMBEDDED, FOLDER, FAMILY = 4_500_000, 5_200_000, 420_000

# No image is larger than this; inflating one takes this much memory.
WINDOW = 4 << 20
FILTERS = [{"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": WINDOW}]


def kind(architecture):
    """The file extension of an architecture's images."""
    return "ptx" if architecture.startswith("sm_") else "hsaco"


def read_archive(path):
    """The architectures and contents of an archive."""
    data = path.read_bytes()
    assert data.startswith(b"!<arch>\n"), f"{path} is no archive"
    images, at = {}, 8
    while at < len(data):
        name, size = data[at : at + 16], int(data[at + 48 : at + 58])
        images[name.decode().rstrip(" ").rstrip("/")] = lzma.decompress(data[at + 60 : at + 60 + size])
        at += 60 + size + size % 2
    return images


def write_archive(path, images):
    """Leaves an archive alone if it has these contents: another version of the compressor may make other
    bytes."""
    if path.exists() and read_archive(path) == images:
        return
    data = bytearray(b"!<arch>\n")
    for architecture, contents in sorted(images.items()):
        assert len(contents) <= WINDOW and len(architecture) < 16, architecture
        packed = lzma.compress(contents, format=lzma.FORMAT_ALONE, filters=FILTERS)
        data += b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (f"{architecture}/".encode(), 0, 0, 0, 0o100644, len(packed))
        data += packed + b"\n" * (len(packed) % 2)
    path.write_bytes(data)


# The vocabulary's files that only the host's build has.
HOST = {f"target/{name}.rs" for name in ("entry", "faults", "host", "order")}


def is_list(text):
    """Whether a file only lists modules, besides attributes and what only the host's build has."""
    text = re.sub(r"//.*", "", text)
    text = re.sub(r"^host_only! \{.*?^\}", "", text, flags=re.M | re.S)
    return not re.sub(r"(?:pub(?:\(crate\))? )?mod \w+;|#!?\[[^\]]*\]", "", text).strip()


def sources():
    """The module paths and texts of the device code's sources. They leave out files that only list modules
    (the library's first file, and those of most folders), and the vocabulary's files for the host."""
    files = {}
    for path in sorted(SOURCES.rglob("*.rs")):
        name, text = path.relative_to(SOURCES).as_posix(), path.read_text()
        if not is_list(text) and name not in HOST:
            parts = name[: -len(".rs")].split("/")
            files[tuple(parts[:-1] if parts[-1] == "mod" else parts)] = (name, text)
    return files


def declared(text):
    """The families that a file declares, with the options of each."""
    return re.findall(r'^ +family "(\w+)"([^;]*);', text.split("#[cfg(test)]")[0], re.M)


def families(files):
    return sorted({family for _, text in files.values() for family, _ in declared(text)})


def tuning(family, files):
    clauses = [said for _, text in files.values() for name, said in declared(text) if name == family]
    return [" ".join(clause.split()) for said in clauses for clause in said.split(",") if clause.strip()]


def paths(text):
    """Every module path in a text, with the braces of a `use` expanded."""
    text = re.sub(r"//.*", "", text)
    for use in re.findall(r"\buse\s+([^;]+);", text):
        yield from expanded(re.sub(r"\s+as\s+\w+|\s", "", use))
    for path in re.findall(r"\$?\b\w+(?:::\w+)+", text):
        yield path.lstrip("$").split("::")


def expanded(use):
    head, brace, rest = use.partition("{")
    if not brace:
        yield use.split("::")
        return
    depth, part = 0, ""
    for letter in rest[: rest.rindex("}")] + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and not depth:
            for path in expanded(part):
                yield head.rstrip(":").split("::") + path if head else path
            part = ""
        else:
            part += letter


def mentioned(module, text, files):
    """The modules that a module's text names: each file on the way of a path, as far as the path leads
    through files and folders; its own submodules; and files that define a macro that it calls."""
    folders = {path[:i] for path in files for i in range(len(path))}
    for path in paths(text):
        if path[0] == "crate":
            at, path = (), path[1:]
        elif path[0] in ("super", "self"):
            at = module
            while path and path[0] in ("super", "self"):
                at, path = at[: -1 if path[0] == "super" else None], path[1:]
        else:
            at = module if module + (path[0],) in files else ()
        if at in files:
            yield at
        for name in path:
            at += (name,)
            if at in files:
                yield at
            elif at not in folders:
                break
    for child in re.findall(r"\bmod (\w+);", text):
        yield module + (child,)
    for macro in set(re.findall(r"\b(\w+)!", text)):
        yield from (of for of, (_, other) in files.items() if f"macro_rules! {macro} " in other)


def reach(family, files):
    """The files that a family is made from: those that declare it, the vocabulary, the files that these
    mention, and so on. The result may contain more than is compiled (a mention need not be a use). It
    misses only one case: a trait implemented for a type in a file that neither of them mentions. CI
    builds a sample of the images anyway."""
    found = {module for module, (_, text) in files.items() if any(name == family for name, _ in declared(text))}
    found |= {module for module in files if module[0] == "target"}
    new = list(found)
    while new:
        module = new.pop()
        for other in mentioned(module, files[module][1], files):
            if other in files and other not in found:
                found.add(other)
                new.append(other)
    return sorted(files[module][0] for module in found)


def finish(family, path, files):
    """Adds the block size for ptxas. Without it ptxas plans for 1024 threads, and saves registers where
    loads should be in flight together. Four blocks of 256 on a processor leave it 64, unless the family
    declares otherwise."""
    of_all, of_entry = "4", {}
    for number, _, entries in re.findall(r"^blocks (\d+)( for (.*))?$", "\n".join(tuning(family, files)), re.M):
        of_entry.update(dict.fromkeys(entries.split(), number))
        of_all = of_all if entries else number
    text = re.sub(r"\t// (begin|end) inline asm\n", "", path.read_text())

    def bounded(found):
        blocks = of_entry.pop(found[2], of_all)
        return f"{found[1]})\n.maxntid 256\n.minnctapersm {blocks}\n{{"

    path.write_text(re.sub(r"(\.entry (\w+)\([^)]*\n)\)\n\{", bounded, text))
    assert not of_entry, f"{family} has no {', '.join(of_entry)}"


def source_lines(family, files):
    """The lines of a manifest for a family's sources; build.rs compares the same."""
    for name in reach(family, files):
        data = (SOURCES / name).read_bytes()
        yield f"source {zlib.crc32(data):08x} {len(data)} {name}"


def stale(files):
    for family in families(files):
        manifest = IMAGES / f"{family}.manifest"
        said = manifest.read_text().splitlines() if manifest.exists() else []
        if [line for line in said if line.startswith("source ")] != list(source_lines(family, files)):
            yield family


def image_lines(images):
    for architecture, contents in sorted(images.items()):
        yield f"image {hashlib.sha256(contents).hexdigest()} {len(contents)} {architecture}"


def object_version(architecture):
    """The version of an architecture's code objects, as the ABI byte of the ELF header encodes it: version
    5 loads from ROCm 6.0 on; generic targets need version 6, which ROCm 6.4 is the first to load for
    all of them."""
    return 4 if architecture.endswith("-generic") else 3


def pack(source, into, compiler, names, files):
    for path in into.iterdir() if into == IMAGES else ():
        if path.stem not in families(files):
            path.unlink()
    for family in names:
        images = {p.name.split(".", 2)[1]: p.read_bytes() for p in source.glob(f"{family}.*.*") if p.suffix in (".ptx", ".hsaco")}
        write_archive(into / f"{family}.a", images)
        lines = [f"compiler {compiler}", *source_lines(family, files), *image_lines(images)]
        (into / f"{family}.manifest").write_text("\n".join(lines) + "\n")


def unpack(into, archives):
    into.mkdir(parents=True, exist_ok=True)
    for path in sorted(archives.glob("*.a")):
        for architecture, contents in read_archive(path).items():
            (into / f"{path.stem}.{architecture}.{kind(architecture)}").write_bytes(contents)


def wrong():
    """The archives that differ from their manifests, and the sizes above their limits."""
    sizes = {path.stem: path.stat().st_size for path in IMAGES.glob("*.a")}
    folder = sum(path.stat().st_size for path in (ROOT / "ptx").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    print(f"images: {sum(sizes.values())} bytes embedded of {EMBEDDED} allowed; ptx/: {folder} of {FOLDER}")
    checks = [("all archives", sum(sizes.values()), EMBEDDED), ("ptx/", folder, FOLDER)]
    checks += [(family, size, FAMILY) for family, size in sizes.items()]
    for what, size, limit in checks:
        if size > limit:
            yield f"{what}: {size} bytes, {limit} allowed"
    for family in sizes:
        for architecture, contents in read_archive(IMAGES / f"{family}.a").items():
            if kind(architecture) == "hsaco" and contents[8] != object_version(architecture):
                yield f"{family}.{architecture}: its ELF header says ABI {contents[8]}, not {object_version(architecture)}"
        said = (IMAGES / f"{family}.manifest").read_text().splitlines()
        if [line for line in said if line.startswith("image ")] != list(image_lines(read_archive(IMAGES / f"{family}.a"))):
            yield f"{family}: the archive is not what the manifest says"


def main(command, *rest):
    if command == "unpack":
        unpack(Path(rest[0]), Path(rest[1]) if len(rest) > 1 else IMAGES)
    elif command == "pack":
        pack(Path(rest[0]), Path(rest[1]), rest[2], rest[3:], sources())
    elif command == "families":
        print("\n".join(families(sources())))
    elif command == "tuning":
        print("\n".join(tuning(rest[0], sources())))
    elif command == "finish":
        finish(rest[0], Path(rest[1]), sources())
    elif command == "reach":
        print("\n".join(reach(rest[0], sources())))
    elif command == "stale":
        print("\n".join(stale(sources())))
    elif command == "check":
        sys.exit("\n".join(wrong()) or None)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
