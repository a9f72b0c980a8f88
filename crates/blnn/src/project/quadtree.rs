//! The push of all points against each other, by the method of Barnes and Hut.
//!
//! Points are sorted along a Z-shaped curve, so a cell of the tree is a range of them. Packets of
//! neighbours on the curve walk the tree together: a cell that is far from all of them acts as
//! one heavy point, and the arithmetic of a packet fills vector registers.

use blnn_kernels::Threads;

/// Points that walk the tree together.
const PACKET: usize = 16;

/// A cell of so few points is not divided.
const LEAF: usize = 8;

/// Bits of a coordinate on the curve: the depth of the tree.
const BITS: u32 = 16;

/// A cell acts as one point when its width is below this share of its distance.
const WIDTH_SHARE: f32 = 0.5;

/// A point, or the middle of a cell.
type Point = [f32; 2];

/// One cell of the tree. Cells lie in the order of a walk, so the children of one follow it.
struct Cell {
    centre: Point,
    count: f32,
    /// Square of the distance beyond which the cell acts as one point.
    reach: f32,
    /// The next cell if this one's children are left out.
    skip: u32,
    /// The sorted points of an undivided cell; empty where the cell is divided or its points are
    /// too close to be told apart.
    points: std::ops::Range<u32>,
}

/// The tree and what it computes, kept from step to step for its memory.
#[derive(Default)]
pub(super) struct Quadtree {
    /// Curve position and number of each point, sorted.
    order: Vec<(u32, u32)>,
    sorted: Vec<Point>,
    cells: Vec<Cell>,
    /// Where each point is in the sorted order.
    place: Vec<u32>,
    /// Push and share of the total, by sorted order.
    pushes: Vec<[f32; 3]>,
}

impl Quadtree {
    /// Computes the push on every point; gives the sum over all pairs of `1 / (1 + d²)`.
    pub(super) fn update(&mut self, points: &[Point], threads: &Threads) -> f64 {
        let (low, width) = bounds(points);
        self.sort(points, low, width);
        self.cells.clear();
        self.divide(0..points.len(), 0, width);
        self.walk(threads);
        self.pushes.iter().map(|p| f64::from(p[2])).sum()
    }

    /// `Σ (y_i − y_j) / (1 + d²)²` for one point.
    pub(super) fn push(&self, point: usize) -> Point {
        let [x, y, _] = self.pushes[self.place[point] as usize];
        [x, y]
    }

    /// Sorts along the curve. The order of the step before is nearly right, which the sort uses.
    #[expect(clippy::stable_sort_primitive, reason = "the unstable sort gains nothing from order")]
    fn sort(&mut self, points: &[Point], low: Point, width: f32) {
        if self.order.len() != points.len() {
            self.order = (0..points.len() as u32).map(|i| (0, i)).collect();
            self.place = vec![0; points.len()];
            self.sorted = vec![[0.0; 2]; points.len()];
            self.pushes = vec![[0.0; 3]; points.len()];
        }
        let scale = if width > 0.0 { (1_u32 << BITS) as f32 / width } else { 0.0 };
        for (code, i) in &mut self.order {
            let [x, y] = points[*i as usize];
            *code = curve_position((x - low[0]) * scale, (y - low[1]) * scale);
        }
        self.order.sort();
        for (at, &(_, i)) in self.order.iter().enumerate() {
            self.place[i as usize] = at as u32;
            self.sorted[at] = points[i as usize];
        }
    }

    /// Appends the cell of a range of sorted points, and its children.
    fn divide(&mut self, range: std::ops::Range<usize>, depth: u32, width: f32) {
        let at = self.cells.len();
        let reach = (width / WIDTH_SHARE).powi(2);
        let leaf = range.len() <= LEAF;
        let points = if leaf { range.start as u32..range.end as u32 } else { 0..0 };
        let (centre, count) = (mean(&self.sorted[range.clone()]), range.len() as f32);
        self.cells.push(Cell { centre, count, reach, skip: 0, points });
        if !leaf && depth < BITS {
            let shift = 2 * (BITS - 1 - depth);
            let mut start = range.start;
            for child in 0..4 {
                let part = &self.order[start..range.end];
                let end = start + part.partition_point(|(code, _)| (code >> shift) & 3 <= child);
                if end > start {
                    self.divide(start..end, depth + 1, width / 2.0);
                }
                start = end;
            }
        }
        self.cells[at].skip = self.cells.len() as u32;
    }

    fn walk(&mut self, threads: &Threads) {
        let Self { sorted, cells, pushes, .. } = self;
        // Short pieces of the curve, since the middle of a picture is denser than its rim.
        let mut pieces: Vec<&mut [[f32; 3]]> = pushes.chunks_mut(16 * PACKET).collect();
        threads.for_each_owned(&mut pieces, |piece, out| {
            for (packet, out) in out.chunks_mut(PACKET).enumerate() {
                let first = (piece * 16 + packet) * PACKET;
                let packet = Packet::new(&sorted[first..first + out.len()]);
                packet.pushes(cells, sorted, out);
            }
        });
    }
}

/// The lower left corner and the width of the square that holds all points.
fn bounds(points: &[Point]) -> (Point, f32) {
    let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
    for point in points {
        for axis in 0..2 {
            low[axis] = low[axis].min(point[axis]);
            high[axis] = high[axis].max(point[axis]);
        }
    }
    (low, (high[0] - low[0]).max(high[1] - low[1]))
}

/// The bits of both coordinates interleaved, those of `y` on top.
fn curve_position(x: f32, y: f32) -> u32 {
    let spread = |v: f32| {
        let mut bits = (v as u32).min((1 << BITS) - 1);
        bits = (bits | (bits << 8)) & 0x00FF_00FF;
        bits = (bits | (bits << 4)) & 0x0F0F_0F0F;
        bits = (bits | (bits << 2)) & 0x3333_3333;
        (bits | (bits << 1)) & 0x5555_5555
    };
    spread(x) | (spread(y) << 1)
}

fn mean(points: &[Point]) -> Point {
    let (mut x, mut y) = (0.0, 0.0);
    for point in points {
        x += f64::from(point[0]);
        y += f64::from(point[1]);
    }
    let n = points.len() as f64;
    [(x / n) as f32, (y / n) as f32]
}

/// Some neighbouring points, with what pushes them.
struct Packet {
    x: [f32; PACKET],
    y: [f32; PACKET],
    low: Point,
    high: Point,
    push_x: [f32; PACKET],
    push_y: [f32; PACKET],
    total: [f32; PACKET],
}

impl Packet {
    /// A short packet is filled up with its first point, whose results are then left out.
    fn new(points: &[Point]) -> Self {
        let (mut low, mut high) = (points[0], points[0]);
        for point in points {
            for axis in 0..2 {
                low[axis] = low[axis].min(point[axis]);
                high[axis] = high[axis].max(point[axis]);
            }
        }
        let zero = [0.0; PACKET];
        let at = |lane: usize| points.get(lane).unwrap_or(&points[0]);
        let (x, y) = (std::array::from_fn(|l| at(l)[0]), std::array::from_fn(|l| at(l)[1]));
        Self { x, y, low, high, push_x: zero, push_y: zero, total: zero }
    }

    fn pushes(mut self, cells: &[Cell], sorted: &[Point], out: &mut [[f32; 3]]) {
        let mut at = 0;
        while let Some(cell) = cells.get(at) {
            let next = at + 1;
            at = cell.skip as usize;
            if self.square_distance(cell.centre) > cell.reach {
                self.add(cell.centre, cell.count);
            } else if !cell.points.is_empty() {
                let range = cell.points.start as usize..cell.points.end as usize;
                sorted[range].iter().for_each(|&point| self.add(point, 1.0));
            } else if at > next {
                at = next;
            } else {
                self.add(cell.centre, cell.count);
            }
        }
        for (lane, out) in out.iter_mut().enumerate() {
            // Each point met itself once, at distance zero: no push, but a one in the total.
            *out = [self.push_x[lane], self.push_y[lane], self.total[lane] - 1.0];
        }
    }

    /// From `point` to the nearest place of the rectangle around the packet.
    fn square_distance(&self, point: Point) -> f32 {
        let gap = |axis: usize| {
            (self.low[axis] - point[axis]).max(point[axis] - self.high[axis]).max(0.0)
        };
        gap(0).powi(2) + gap(1).powi(2)
    }

    fn add(&mut self, centre: Point, count: f32) {
        for lane in 0..PACKET {
            let (dx, dy) = (self.x[lane] - centre[0], self.y[lane] - centre[1]);
            let closeness = 1.0 / (1.0 + dx * dx + dy * dy);
            let weight = count * closeness;
            self.total[lane] += weight;
            self.push_x[lane] += weight * closeness * dx;
            self.push_y[lane] += weight * closeness * dy;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud(n: usize) -> Vec<Point> {
        let wave = |i: usize, a: f32| (i as f32 * a).sin() * (1.0 + (i % 13) as f32);
        (0..n).map(|i| [wave(i, 0.71), wave(i, 1.37)]).collect()
    }

    fn exact(points: &[Point], i: usize) -> (f64, f64, f64) {
        let mut sums = (0.0, 0.0, 0.0);
        for (j, other) in points.iter().enumerate().filter(|(j, _)| *j != i) {
            let d = [0, 1].map(|axis| f64::from(points[i][axis] - other[axis]));
            let closeness = 1.0 / (1.0 + d[0] * d[0] + d[1] * d[1]);
            sums.0 += closeness * closeness * d[0];
            sums.1 += closeness * closeness * d[1];
            sums.2 += closeness;
            assert!(j < points.len());
        }
        sums
    }

    #[test]
    fn agrees_with_visiting_every_pair() {
        let points = cloud(1500);
        let mut tree = Quadtree::default();
        let total = tree.update(&points, &Threads::new(2));
        let sums: Vec<_> = (0..points.len()).map(|i| exact(&points, i)).collect();
        let want: f64 = sums.iter().map(|s| s.2).sum();
        assert!((total / want - 1.0).abs() < 0.01, "{total} {want}");
        let (mut wrong, mut size) = (0.0, 0.0);
        for (i, sum) in sums.iter().enumerate() {
            let got = tree.push(i);
            wrong += (f64::from(got[0]) - sum.0).powi(2) + (f64::from(got[1]) - sum.1).powi(2);
            size += sum.0.powi(2) + sum.1.powi(2);
        }
        assert!((wrong / size).sqrt() < 0.01, "{}", (wrong / size).sqrt());
    }

    #[test]
    fn points_in_one_place_do_not_push() {
        let mut tree = Quadtree::default();
        let total = tree.update(&[[3.0, 4.0]; 100], &Threads::new(1));
        assert_eq!(total, 100.0 * 99.0);
        assert_eq!(tree.push(57), [0.0; 2]);
    }

    #[test]
    fn two_points_push_apart() {
        let mut tree = Quadtree::default();
        let total = tree.update(&[[0.0, 0.0], [1.0, 0.0]], &Threads::new(1));
        assert_eq!(total, 1.0);
        assert_eq!((tree.push(0), tree.push(1)), ([-0.25, 0.0], [0.25, 0.0]));
    }
}
