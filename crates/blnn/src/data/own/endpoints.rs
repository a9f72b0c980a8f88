//! [`EndPoints`]: edges as pairs of ids, before it is known which node is which row.

use blnn_kernels::Threads;

use super::ids::{Interner, NodeIds, whole_number};

/// The two ends of every edge, in the order in which they were read.
#[derive(Debug)]
pub(crate) enum EndPoints {
    /// While every id is a whole number. In blocks, so that growing copies nothing.
    Numbers(Vec<Vec<[i64; 2]>>),
    /// From the first id on that is not.
    Texts { ids: Interner, pairs: Vec<[u32; 2]> },
}

/// One end of an edge, to say something of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EdgeEnd {
    /// Which edge, from 0.
    pub(crate) edge: usize,
    /// 0 for its source, 1 for its target.
    pub(crate) end: usize,
    pub(crate) id: String,
}

impl EdgeEnd {
    /// Which end it is, in words.
    pub(crate) fn name(&self) -> &'static str {
        ["source", "target"][self.end]
    }
}

impl EndPoints {
    pub(crate) fn new() -> Self {
        Self::Numbers(Vec::new())
    }

    /// Adds edges whose ids are whole numbers.
    pub(crate) fn push_numbers(&mut self, block: Vec<[i64; 2]>) {
        match self {
            Self::Numbers(blocks) => blocks.push(block),
            Self::Texts { .. } => {
                for [source, target] in block {
                    self.push(&source.to_string(), &target.to_string());
                }
            }
        }
    }

    /// Adds one edge.
    pub(crate) fn push(&mut self, source: &str, target: &str) {
        const BLOCK: usize = 1 << 16;
        if let Self::Numbers(blocks) = self {
            let ends = (whole_number(source.as_bytes()), whole_number(target.as_bytes()));
            if let (Some(source), Some(target)) = ends {
                match blocks.last_mut().filter(|block| block.len() < BLOCK) {
                    Some(block) => block.push([source, target]),
                    None => blocks.push(vec![[source, target]]),
                }
                return;
            }
            let blocks = std::mem::take(blocks);
            *self = Self::Texts { ids: Interner::default(), pairs: Vec::new() };
            for block in blocks {
                self.push_numbers(block);
            }
        }
        if let Self::Texts { ids, pairs } = self {
            pairs.push([ids.intern(source).0, ids.intern(target).0]);
        }
    }

    /// The nodes that the edges name, and the edges as rows of them: whole numbers in increasing
    /// order, texts in the order in which they were first seen.
    pub(crate) fn into_graph(self, threads: &Threads) -> (NodeIds, Vec<(u32, u32)>) {
        match self {
            Self::Texts { ids, pairs } => {
                let edges = pairs.into_iter().map(|[source, target]| (source, target)).collect();
                (NodeIds::Texts(ids), edges)
            }
            Self::Numbers(blocks) => {
                let ids = distinct(&blocks);
                // Sorted and without repetition, so no number comes twice.
                let nodes = NodeIds::of_numbers(ids)
                    .unwrap_or_else(|_| NodeIds::Texts(Interner::default()));
                let edges = Self::Numbers(blocks).into_rows(&nodes, threads).unwrap_or_default();
                (nodes, edges)
            }
        }
    }

    /// The edges as rows of known nodes.
    pub(crate) fn into_rows(
        self,
        nodes: &NodeIds,
        threads: &Threads,
    ) -> Result<Vec<(u32, u32)>, EdgeEnd> {
        match self {
            Self::Texts { ids, pairs } => {
                let rows: Vec<Option<u32>> = ids.iter().map(|id| nodes.row_of_text(id)).collect();
                let text = |id: u32| ids.get(id).to_owned();
                let row = |id: u32| rows[id as usize];
                pairs
                    .iter()
                    .enumerate()
                    .map(|(edge, &pair)| resolve(edge, pair, row, text))
                    .collect()
            }
            Self::Numbers(mut blocks) => {
                let total = blocks.iter().map(Vec::len).sum();
                let mut edges = Vec::with_capacity(total);
                let row = |id: i64| nodes.row_of_number(id);
                // A few blocks at a time, each freed once its rows are known.
                for group in blocks.chunks_mut(16) {
                    let mut parts: Vec<_> =
                        group.iter_mut().map(|block| (std::mem::take(block), Ok(vec![]))).collect();
                    threads.for_each_owned(&mut parts, |_, (block, out)| {
                        let edges = block.iter().enumerate();
                        *out = edges
                            .map(|(e, &pair)| resolve(e, pair, row, |id| id.to_string()))
                            .collect();
                    });
                    for (_, part) in parts {
                        let before = edges.len();
                        edges.extend(part.map_err(|fault: EdgeEnd| EdgeEnd {
                            edge: before + fault.edge,
                            ..fault
                        })?);
                    }
                }
                Ok(edges)
            }
        }
    }
}

/// The rows of both ends of an edge.
fn resolve<T: Copy>(
    edge: usize,
    pair: [T; 2],
    row: impl Fn(T) -> Option<u32>,
    text: impl Fn(T) -> String,
) -> Result<(u32, u32), EdgeEnd> {
    let find =
        |end: usize| row(pair[end]).ok_or_else(|| EdgeEnd { edge, end, id: text(pair[end]) });
    Ok((find(0)?, find(1)?))
}

/// All numbers that occur, increasing.
fn distinct(blocks: &[Vec<[i64; 2]>]) -> Vec<i64> {
    let numbers = || blocks.iter().flatten().flatten().copied();
    let (Some(least), Some(most)) = (numbers().min(), numbers().max()) else {
        return Vec::new();
    };
    let count: usize = blocks.iter().map(|block| 2 * block.len()).sum();
    // The distance of two signed numbers fits an unsigned one.
    let span = most.abs_diff(least) as usize;
    if span / 64 <= 2 * count + 1024 {
        let mut seen = vec![0_u64; span / 64 + 1];
        for number in numbers() {
            let place = number.abs_diff(least) as usize;
            seen[place / 64] |= 1 << (place % 64);
        }
        let places = (0..=span).filter(|place| seen[place / 64] >> (place % 64) & 1 == 1);
        return places.map(|place| least + place as i64).collect();
    }
    let mut all = Vec::new();
    for block in blocks {
        all.extend(block.iter().flatten().copied());
        // Never much more than the different numbers so far and one block.
        if all.len() >= 1 << 20 && all.len() >= all.capacity() / 2 {
            all.sort_unstable();
            all.dedup();
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pairs: &[(&str, &str)]) -> EndPoints {
        let mut ends = EndPoints::new();
        for (source, target) in pairs {
            ends.push(source, target);
        }
        ends
    }

    fn names(nodes: &NodeIds) -> Vec<String> {
        (0..nodes.len()).map(|row| nodes.text(row).into_owned()).collect()
    }

    #[test]
    fn whole_numbers_are_sorted_and_texts_stay_in_order() {
        let threads = Threads::new(2);
        let (nodes, edges) = read(&[("30", "-2"), ("7", "30")]).into_graph(&threads);
        assert_eq!(names(&nodes), ["-2", "7", "30"]);
        assert_eq!(edges, [(2, 0), (1, 2)]);
        let (nodes, edges) = read(&[("30", "2"), ("b", "30")]).into_graph(&threads);
        assert_eq!(names(&nodes), ["30", "2", "b"]);
        assert_eq!(edges, [(0, 1), (2, 0)]);
    }

    #[test]
    fn an_end_that_is_no_node_is_told() {
        let nodes = NodeIds::of_numbers(vec![1, 2]).unwrap();
        let threads = Threads::new(1);
        let unknown = read(&[("1", "2"), ("2", "3")]).into_rows(&nodes, &threads).unwrap_err();
        assert_eq!(unknown, EdgeEnd { edge: 1, end: 1, id: "3".into() });
        let unknown = read(&[("1", "2"), ("x", "1")]).into_rows(&nodes, &threads).unwrap_err();
        assert_eq!(unknown, EdgeEnd { edge: 1, end: 0, id: "x".into() });
    }

    proptest! {
        #[test]
        fn distinct_numbers_agree_with_a_set(
            near in prop::collection::vec((-50i64..50, -50i64..50), 0..40),
            far in prop::collection::vec((0i64..999_999_999_999_999_999, 0i64..9), 0..4),
        ) {
            let pairs = near.iter().chain(&far).map(|&(a, b)| [a, b]).collect::<Vec<_>>();
            let wanted: std::collections::BTreeSet<i64> = pairs.iter().flatten().copied().collect();
            let blocks: Vec<_> = pairs.chunks(7).map(<[_]>::to_vec).collect();
            prop_assert_eq!(distinct(&blocks), wanted.into_iter().collect::<Vec<_>>());
        }
    }
}
