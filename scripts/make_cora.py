#!/usr/bin/env python3
"""Pack cora.content and cora.cites into the compact file that is compiled into blnn.

Usage: make_cora.py FOLDER OUTPUT
       FOLDER holds cora.content and cora.cites, as in pgl/data/cora of the source archive of
       the Python package pgl 2.2.6; OUTPUT is crates/blnn/data/cora.bin.

The layout is described in crates/blnn/src/data/cora.rs. Only the standard library is used.
"""

import sys
import zlib
from pathlib import Path

MAGIC = b"blnn packed 1\n"


def varint(number):
    """LEB128: seven bits a byte, lowest first, the top bit set on all but the last."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def increasing(numbers, start=0):
    """How many numbers there are, and the gap that each leaves to the one before it."""
    out = bytearray(varint(len(numbers)))
    for number in numbers:
        out += varint(number - start)
        start = number + 1
    return bytes(out)


def read_papers(path):
    """Paper id → (word indices, class), ordered by id."""
    papers = {}
    for line in path.read_text().splitlines():
        paper, *flags, label = line.split("\t")
        papers[int(paper)] = ([k for k, flag in enumerate(flags) if flag == "1"], label, len(flags))
    return dict(sorted(papers.items()))


def read_citations(path, row):
    """For each paper, the later papers it is joined to, in order and each once."""
    later = [set() for _ in row]
    for line in path.read_text().splitlines():
        cited, citing = sorted(row[int(paper)] for paper in line.split())
        if cited != citing:
            later[cited].add(citing)
    return [sorted(papers) for papers in later]


def pack(folder):
    papers = read_papers(folder / "cora.content")
    classes = sorted({label for _, label, _ in papers.values()})
    (words,) = {count for _, _, count in papers.values()}
    citations = read_citations(folder / "cora.cites", {p: i for i, p in enumerate(papers)})
    out = bytearray(MAGIC)
    out += varint(words) + varint(len(classes))
    for name in classes:
        out += varint(len(name.encode())) + name.encode()
    out += increasing(list(papers))
    out += bytes(classes.index(label) for _, label, _ in papers.values())
    for present, _, _ in papers.values():
        out += increasing(present)
    for i, later in enumerate(citations):
        out += increasing(later, start=i + 1)
    entries = 2 * sum(map(len, citations))
    print(f"{len(papers)} papers, {entries} entries, {words} words, {len(classes)} classes")
    return bytes(out)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    packed = zlib.compress(pack(Path(sys.argv[1])), 9)
    Path(sys.argv[2]).write_bytes(packed)
    print(f"{len(packed)} bytes")


if __name__ == "__main__":
    main()
