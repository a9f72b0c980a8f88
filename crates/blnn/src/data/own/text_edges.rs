//! [`TextEdges`]: edges between texts, numbered on all threads.
//!
//! The time goes into finding each id in a table of all ids, which misses every cache. So the
//! table is cut into parts by the hashes of the ids: a part fits a cache, and parts are filled at
//! the same time. The numbers of the ids still follow from the order of the file alone.

use std::hash::BuildHasher;

use blnn_kernels::Threads;

use super::edge_list::Layout;
use super::ids::{Interner, TextHasher};
use super::record::{Field, Split, split};

/// Number of parts, a power of two.
const PARTS: usize = 32;

/// Edges while they are read.
#[derive(Debug)]
pub(crate) struct TextEdges {
    hasher: TextHasher,
    parts: Vec<Part>,
    /// Both ends of every edge: part and number in it.
    pairs: Vec<[Code; 2]>,
}

/// The ids of one part.
#[derive(Debug)]
struct Part {
    ids: Interner,
    /// Where each id was first seen: twice the edge, plus the end.
    first: Vec<u64>,
}

/// An id: its number within its part, times [`PARTS`], plus the part.
type Code = u32;

/// One end of an edge in a piece of text.
#[derive(Clone, Copy)]
struct Item {
    hash: u64,
    field: Field,
    /// Twice the edge of the piece, plus the end.
    place: u32,
}

/// A piece of text with its ends sorted by part.
struct Piece<'a> {
    bytes: &'a [u8],
    edges: usize,
    items: Vec<Vec<Item>>,
}

impl TextEdges {
    pub(crate) fn new() -> Self {
        let hasher = TextHasher::default();
        let part = |_| Part { ids: Interner::new(hasher.clone()), first: Vec::new() };
        Self { parts: (0..PARTS).map(part).collect(), pairs: Vec::new(), hasher }
    }

    /// Adds one edge.
    pub(crate) fn push(&mut self, source: &str, target: &str) {
        let place = 2 * self.pairs.len() as u64;
        let hasher = &self.hasher;
        let parts = &mut self.parts;
        let mut code = |text: &str, place: u64| {
            let hash = hasher.hash_one(text.as_bytes());
            let part = part_of(hash);
            parts[part].code(part, hash, text.as_bytes(), place)
        };
        let pair = [code(source, place), code(target, place + 1)];
        self.pairs.push(pair);
    }

    /// Adds all edges of some pieces of whole records, or nothing: false if anything in them
    /// needs a closer look.
    pub(crate) fn add(&mut self, pieces: &[&[u8]], layout: Layout, threads: &Threads) -> bool {
        let mut split: Vec<(&[u8], Option<Piece<'_>>)> =
            pieces.iter().map(|&bytes| (bytes, None)).collect();
        let hasher = &self.hasher;
        threads.for_each_owned(&mut split, |_, (bytes, piece)| {
            *piece = Piece::new(bytes, layout, hasher);
        });
        let pieces: Option<Vec<Piece<'_>>> = split.into_iter().map(|(_, piece)| piece).collect();
        let Some(pieces) = pieces else {
            return false;
        };
        let before = self.pairs.len();
        let total: usize = pieces.iter().map(|piece| piece.edges).sum();
        let mut filled: Vec<(&mut Part, Vec<Code>)> =
            self.parts.iter_mut().map(|part| (part, Vec::new())).collect();
        threads.for_each_owned(&mut filled, |index, (part, codes)| {
            let mut first_edge = before;
            for piece in &pieces {
                for item in &piece.items[index] {
                    let place = 2 * first_edge as u64 + u64::from(item.place);
                    codes.push(part.code(index, item.hash, item.field.raw(piece.bytes), place));
                }
                first_edge += piece.edges;
            }
        });
        let mut codes: Vec<_> = filled.into_iter().map(|(_, codes)| codes.into_iter()).collect();
        self.pairs.resize(before + total, [0; 2]);
        let mut rest = &mut self.pairs[before..];
        for piece in &pieces {
            let (pairs, after) = rest.split_at_mut(piece.edges);
            for (items, codes) in piece.items.iter().zip(&mut codes) {
                for (item, code) in items.iter().zip(codes) {
                    pairs[item.place as usize / 2][item.place as usize % 2] = code;
                }
            }
            rest = after;
        }
        true
    }

    /// The ids in the order in which they were first seen, and the edges by their numbers.
    pub(crate) fn finish(self, threads: &Threads) -> (Interner, Vec<[u32; 2]>) {
        let Self { parts, mut pairs, hasher } = self;
        let seen = |(index, part): (usize, &Part)| {
            let codes = part.first.iter().enumerate();
            codes.map(move |(number, &first)| (first, code(number, index))).collect::<Vec<_>>()
        };
        let mut order: Vec<(u64, Code)> = parts.iter().enumerate().flat_map(seen).collect();
        order.sort_unstable();
        let mut ids = Interner::new(hasher);
        let mut numbers: Vec<Vec<u32>> = parts.iter().map(|p| vec![0; p.first.len()]).collect();
        for (_, code) in order {
            let (part, number) = (code as usize % PARTS, code as usize / PARTS);
            let text = parts[part].ids.get(number as u32);
            numbers[part][number] = ids.intern(text).0;
        }
        drop(parts);
        let mut blocks: Vec<&mut [[Code; 2]]> = pairs.chunks_mut(1 << 16).collect();
        threads.for_each_owned(&mut blocks, |_, block| {
            for id in block.iter_mut().flatten() {
                *id = numbers[*id as usize % PARTS][*id as usize / PARTS];
            }
        });
        (ids, pairs)
    }
}

fn part_of(hash: u64) -> usize {
    // The table uses the highest and the lowest bits.
    (hash >> 32) as usize % PARTS
}

fn code(number: usize, part: usize) -> Code {
    (number * PARTS + part) as Code
}

impl Part {
    fn code(&mut self, part: usize, hash: u64, text: &[u8], place: u64) -> Code {
        let (number, is_new) = self.ids.intern_hashed(hash, text);
        if is_new {
            self.first.push(place);
        }
        code(number as usize, part)
    }
}

impl<'a> Piece<'a> {
    fn new(bytes: &'a [u8], layout: Layout, hasher: &TextHasher) -> Option<Self> {
        std::str::from_utf8(bytes).ok()?;
        let mut piece = Self { bytes, edges: 0, items: vec![Vec::new(); PARTS] };
        let mut fields = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let Split::Record(length) = split(&bytes[at..], layout.separator, true, &mut fields)
            else {
                return None;
            };
            if fields.len() == layout.width {
                for (end, &column) in layout.ends.iter().enumerate() {
                    let field = fields[column].moved(at);
                    let text = field.raw(bytes);
                    if text.is_empty() {
                        return None;
                    }
                    let hash = hasher.hash_one(text);
                    let place = (2 * piece.edges + end) as u32;
                    piece.items[part_of(hash)].push(Item { hash, field, place });
                }
                piece.edges += 1;
            } else if !fields.is_empty() {
                return None;
            }
            at += length;
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Separator;
    use super::*;

    fn layout() -> Layout {
        Layout { ends: [0, 1], width: 2, separator: Separator::Comma }
    }

    fn found(edges: TextEdges, threads: &Threads) -> Vec<(String, String)> {
        let (ids, pairs) = edges.finish(threads);
        let name = |id: u32| ids.get(id).to_owned();
        pairs.iter().map(|&[a, b]| (name(a), name(b))).collect()
    }

    #[test]
    fn pieces_and_single_edges_are_numbered_in_the_order_of_the_file() {
        let pair = |i: u32| (format!("n{}", i * 7919 % 61), format!("ü{}", i * 31 % 17));
        let wanted: Vec<_> = (0..300).map(pair).collect();
        let line = |(a, b): &(String, String)| format!("{a},{b}\n");
        let text = |pairs: &[(String, String)]| pairs.iter().map(line).collect::<String>();
        let (first, second) = (text(&wanted[1..100]), text(&wanted[100..]));
        let mut orders = Vec::new();
        for count in [1, 2] {
            let threads = Threads::new(count);
            let mut edges = TextEdges::new();
            edges.push(&wanted[0].0, &wanted[0].1);
            assert!(edges.add(&[first.as_bytes(), second.as_bytes()], layout(), &threads));
            let (ids, _) = edges.finish(&threads);
            orders.push(ids.iter().map(str::to_owned).collect::<Vec<_>>());
            let mut edges = TextEdges::new();
            for (a, b) in &wanted {
                edges.push(a, b);
            }
            assert_eq!(found(edges, &threads), wanted);
        }
        assert_eq!(orders[0], orders[1]);
        assert_eq!(orders[0][..2], [wanted[0].0.clone(), wanted[0].1.clone()]);
        let mut seen = Vec::new();
        for id in wanted.iter().flat_map(|(a, b)| [a, b]) {
            if !seen.contains(id) {
                seen.push(id.clone());
            }
        }
        assert_eq!(orders[0], seen);
    }

    #[test]
    fn what_needs_a_closer_look_changes_nothing() {
        let threads = Threads::new(1);
        for odd in [&b"a,b,c\n"[..], b"a,\n", b"a\n", b"\"a\"b,c\n", b"\xff,a\n"] {
            let mut edges = TextEdges::new();
            assert!(!edges.add(&[b"x,y\n", odd], layout(), &threads));
            assert!(found(edges, &threads).is_empty());
        }
    }
}
