//! One-vs-rest logistic regression with liblinear's objective, all classes together along a path
//! of growing `C`.
//!
//! For each class: minimise `½‖w‖² + C Σ_i log(1 + exp(−y_i w·x_i))`, `y_i = ±1`, where the last
//! column of the unrotated `x` is 1, so the intercept is regularised as liblinear does.
//!
//! Newton's method with preconditioned conjugate gradients (as liblinear's trust-region Newton),
//! but the classes share each pass over `x`, every `C` starts from an extrapolation of the last
//! two, and the features lie on their principal axes (see [`super::rotation`]), where the
//! Hessian's diagonal is a good preconditioner.

use blnn_kernels::tall::{BLOCK, LANES, TallMatrix, fold_lanes, logistic_into};

/// liblinear's tolerance: a fit ends when the gradient has shrunk by this much, times the share
/// of the rarer side, from where it was at `w = 0`.
const TOLERANCE: f64 = 1e-4;

/// Steps after which a fit ends in any case; warm-started fits take two or three.
const MAX_STEPS: usize = 60;

/// A step is shortened if the slope along it at its end is more than this share of the slope at
/// its start, uphill.
const OVERSHOOT: f64 = 0.5;

/// How exactly a step solves Newton's equation: its residual relative to the gradient.
const FORCING: f64 = 0.1;

/// The fits of all classes on one training set.
pub(super) struct OneVsRest<'a> {
    x: &'a TallMatrix,
    /// Class of each packed row; [`PADDING`] beyond the last.
    targets: Vec<u32>,
    /// Classes with rows on both sides; the others are constant.
    fitted: Vec<u32>,
    constant: Vec<Option<bool>>,
    /// Gradient norm at which a class is done, for `C = 1`.
    goals: Vec<f64>,
    now: Point,
    /// How the last fit changed the weights; the next one expects the same again.
    change: Vec<f32>,
    step: Point,
    gradient: Vec<f32>,
    /// `p (1 − p)` of each row and class.
    curvature: Vec<f32>,
    scratch: Scratch,
}

const PADDING: u32 = u32::MAX;

/// Weights of all classes and the margins `w·x` they give each row.
struct Point {
    /// classes × cols
    weights: Vec<f32>,
    /// blocks × classes × BLOCK
    margins: Vec<f32>,
}

impl Point {
    fn zeros(x: &TallMatrix, classes: usize) -> Self {
        Self {
            weights: vec![0.0; classes * x.cols()],
            margins: vec![0.0; x.count() * classes * BLOCK],
        }
    }
}

#[derive(Default)]
struct Scratch {
    values: Vec<f32>,
    sums: Vec<f32>,
    folded: Vec<f32>,
    /// Products of the search directions, blocks × classes × BLOCK.
    products: Vec<f32>,
    residual: Vec<f32>,
    search: Vec<f32>,
    image: Vec<f32>,
    diagonal: Vec<f32>,
}

impl<'a> OneVsRest<'a> {
    /// All weights zero; row `i` of `x` is of class `targets[i]`.
    pub(super) fn new(x: &'a TallMatrix, targets: &[u32], classes: usize) -> Self {
        let (cols, rows) = (x.cols(), x.count() * BLOCK);
        let mut padded = targets.to_vec();
        padded.resize(rows, PADDING);
        let mut count = vec![0; classes];
        for &t in targets {
            count[t as usize] += 1;
        }
        let constant = |&c: &usize| match c {
            0 => Some(false),
            all if all == targets.len() => Some(true),
            _ => None,
        };
        let constant: Vec<Option<bool>> = count.iter().map(constant).collect();
        let wide = vec![0.0; classes * cols];
        let mut fits = Self {
            x,
            targets: padded,
            fitted: (0..classes as u32).filter(|&c| constant[c as usize].is_none()).collect(),
            constant,
            goals: vec![0.0; classes],
            now: Point::zeros(x, classes),
            change: wide.clone(),
            step: Point::zeros(x, classes),
            gradient: wide.clone(),
            curvature: vec![0.0; classes * rows],
            scratch: Scratch {
                values: vec![0.0; classes * BLOCK],
                sums: vec![0.0; classes * cols * LANES],
                products: vec![0.0; classes * rows],
                residual: wide.clone(),
                search: wide.clone(),
                image: wide.clone(),
                diagonal: wide.clone(),
                folded: wide,
            },
        };
        fits.set_goals(&count, targets.len());
        fits
    }

    fn set_goals(&mut self, count: &[usize], rows: usize) {
        let all = self.fitted.clone();
        self.slopes(&all, 1.0);
        for &class in &all {
            let c = class as usize;
            let rarer = count[c].min(rows - count[c]).max(1) as f64;
            self.goals[c] = TOLERANCE * rarer / rows as f64 * norm(self.row(&self.gradient, c));
        }
    }

    /// Starts the next fit from `weights` instead of the last fit's.
    pub(super) fn start_from(&mut self, weights: &[f32]) {
        self.now.weights.copy_from_slice(weights);
    }

    /// The weights of all classes, `classes × cols`.
    pub(super) fn weights(&self) -> &[f32] {
        &self.now.weights
    }

    /// The answer of each class that had no row, or nothing but rows, in the training set.
    pub(super) fn constant(&self) -> &[Option<bool>] {
        &self.constant
    }

    fn row<'v>(&self, values: &'v [f32], class: usize) -> &'v [f32] {
        &values[class * self.x.cols()..(class + 1) * self.x.cols()]
    }

    /// Fits all classes for `c`, starting from what was learned for smaller ones.
    pub(super) fn fit(&mut self, c: f64) {
        let before = self.now.weights.clone();
        for (now, change) in self.now.weights.iter_mut().zip(&self.change) {
            *now += change;
        }
        self.measure_margins();
        let mut open = self.fitted.clone();
        self.slopes(&open, c);
        for _ in 0..MAX_STEPS {
            open.retain(|&k| {
                let k = k as usize;
                norm(self.row(&self.gradient, k)) > c * self.goals[k]
            });
            if open.is_empty() {
                break;
            }
            self.directions(&open, c);
            self.advance(&open, c);
        }
        for ((change, now), before) in self.change.iter_mut().zip(&self.now.weights).zip(before) {
            *change = now - before;
        }
    }

    /// Computes the margins from the weights. Steps then keep them up to date, but each rounds.
    fn measure_margins(&mut self) {
        let classes = self.constant.len();
        let all: Vec<u32> = (0..classes as u32).collect();
        for (block, out) in self.now.margins.chunks_mut(classes * BLOCK).enumerate() {
            self.x.times(block, &self.now.weights, &all, out);
        }
    }

    /// Gradient and curvature of the listed classes at the present weights.
    fn slopes(&mut self, open: &[u32], c: f64) {
        let classes = self.constant.len();
        let (cols, open_len) = (self.x.cols(), open.len());
        let Scratch { values, sums, folded, .. } = &mut self.scratch;
        sums[..open_len * cols * LANES].fill(0.0);
        for block in 0..self.x.count() {
            let targets = &self.targets[block * BLOCK..(block + 1) * BLOCK];
            for (value, &class) in values.chunks_mut(BLOCK).zip(open) {
                let at = (block * classes + class as usize) * BLOCK;
                logistic_into(&self.now.margins[at..at + BLOCK], value);
                let curvature = &mut self.curvature[at..at + BLOCK];
                for ((p, h), &t) in value.iter_mut().zip(curvature).zip(targets) {
                    *h = *p * (1.0 - *p);
                    *p -= if t == class { 1.0 } else { 0.0 };
                }
            }
            self.x.add_transposed(block, values, open_len, sums);
        }
        fold_lanes(sums, &mut folded[..open_len * cols]);
        for (sum, &class) in folded.chunks(cols).zip(open) {
            let range = class as usize * cols..(class as usize + 1) * cols;
            let weights = &self.now.weights[range.clone()];
            for ((g, w), s) in self.gradient[range].iter_mut().zip(weights).zip(sum) {
                *g = w + c as f32 * s;
            }
        }
    }

    /// The diagonal of the Hessian of the listed classes, which preconditions their steps.
    fn diagonals(&mut self, open: &[u32], c: f64) {
        let (classes, cols) = (self.constant.len(), self.x.cols());
        let Scratch { values, sums, folded, diagonal, .. } = &mut self.scratch;
        sums[..open.len() * cols * LANES].fill(0.0);
        for block in 0..self.x.count() {
            for (value, &class) in values.chunks_mut(BLOCK).zip(open) {
                let at = (block * classes + class as usize) * BLOCK;
                value.copy_from_slice(&self.curvature[at..at + BLOCK]);
            }
            self.x.add_transposed_squares(block, values, open.len(), sums);
        }
        fold_lanes(sums, &mut folded[..open.len() * cols]);
        for (sum, &class) in folded.chunks(cols).zip(open) {
            let out = &mut diagonal[class as usize * cols..(class as usize + 1) * cols];
            out.iter_mut().zip(sum).for_each(|(d, s)| *d = 1.0 + c as f32 * s);
        }
    }

    /// Newton steps of the listed classes, by conjugate gradients.
    fn directions(&mut self, open: &[u32], c: f64) {
        self.diagonals(open, c);
        let (classes, cols) = (self.constant.len(), self.x.cols());
        let mut energy = vec![0.0; classes];
        let mut goal = vec![0.0; classes];
        for &class in open {
            let k = class as usize;
            let range = k * cols..(k + 1) * cols;
            let gradient = &self.gradient[range.clone()];
            let size = norm(gradient);
            goal[k] = (FORCING * size).max(0.3 * c * self.goals[k]);
            self.step.weights[range.clone()].fill(0.0);
            for block in self.step.margins.chunks_mut(classes * BLOCK) {
                block[k * BLOCK..(k + 1) * BLOCK].fill(0.0);
            }
            let residual = &mut self.scratch.residual[range.clone()];
            residual.iter_mut().zip(gradient).for_each(|(r, g)| *r = -g);
            let diagonal = &self.scratch.diagonal[range.clone()];
            let search = &mut self.scratch.search[range];
            for ((p, r), d) in search.iter_mut().zip(&*residual).zip(diagonal) {
                *p = r / d;
            }
            energy[k] = dot(residual, search);
        }
        let mut busy = open.to_vec();
        for _ in 0..4 * cols {
            self.apply_hessian(&busy, c);
            for (slot, &class) in busy.iter().enumerate() {
                self.conjugate_step(slot, class as usize, &mut energy[class as usize]);
            }
            busy.retain(|&k| norm(self.row(&self.scratch.residual, k as usize)) > goal[k as usize]);
            if busy.is_empty() {
                break;
            }
        }
    }

    /// `image = H · search` for the listed classes.
    fn apply_hessian(&mut self, busy: &[u32], c: f64) {
        let (classes, cols) = (self.constant.len(), self.x.cols());
        let Scratch { values, sums, folded, products, search, image, .. } = &mut self.scratch;
        sums[..busy.len() * cols * LANES].fill(0.0);
        for (block, product) in products.chunks_mut(classes * BLOCK).enumerate() {
            self.x.times(block, search, busy, product);
            let parts = product.chunks(BLOCK).zip(values.chunks_mut(BLOCK));
            for ((product, value), &class) in parts.zip(busy) {
                let at = (block * classes + class as usize) * BLOCK;
                let curvature = &self.curvature[at..at + BLOCK];
                for ((v, p), h) in value.iter_mut().zip(product).zip(curvature) {
                    *v = p * h;
                }
            }
            self.x.add_transposed(block, values, busy.len(), sums);
        }
        fold_lanes(sums, &mut folded[..busy.len() * cols]);
        for (sum, &class) in folded.chunks(cols).zip(busy) {
            let range = class as usize * cols..(class as usize + 1) * cols;
            let search = &search[range.clone()];
            for ((h, p), s) in image[range].iter_mut().zip(search).zip(sum) {
                *h = p + c as f32 * s;
            }
        }
    }

    /// One step of conjugate gradients for a class whose product is in `slot`.
    fn conjugate_step(&mut self, slot: usize, class: usize, energy: &mut f64) {
        let (classes, cols) = (self.constant.len(), self.x.cols());
        let range = class * cols..(class + 1) * cols;
        let Scratch { products, residual, search, image, diagonal, .. } = &mut self.scratch;
        let (residual, search) = (&mut residual[range.clone()], &mut search[range.clone()]);
        let (image, diagonal) = (&mut image[range.clone()], &diagonal[range.clone()]);
        let length = (*energy / dot(search, image)) as f32;
        add_scaled(&mut self.step.weights[range], length, search);
        add_scaled(residual, -length, image);
        let margins = self.step.margins.chunks_mut(classes * BLOCK);
        for (margins, product) in margins.zip(products.chunks(classes * BLOCK)) {
            let product = &product[slot * BLOCK..(slot + 1) * BLOCK];
            add_scaled(&mut margins[class * BLOCK..(class + 1) * BLOCK], length, product);
        }
        for ((z, r), d) in image.iter_mut().zip(&*residual).zip(diagonal) {
            *z = r / d;
        }
        let next = dot(residual, image);
        let ratio = (next / *energy) as f32;
        for (p, z) in search.iter_mut().zip(image) {
            *p = *z + ratio * *p;
        }
        *energy = next;
    }

    /// Takes the steps of the listed classes, shortening those that overshoot: the objective is
    /// convex, so the slope along the step at its end tells.
    fn advance(&mut self, open: &[u32], c: f64) {
        let mut entry = vec![0.0; self.constant.len()];
        for &class in open {
            entry[class as usize] = self.slope_along_step(class as usize);
            self.move_by_step(class as usize, 1.0);
        }
        let mut moving = open.to_vec();
        for _ in 0..MAX_STEPS {
            self.slopes(&moving, c);
            moving.retain(|&k| self.slope_along_step(k as usize) > -OVERSHOOT * entry[k as usize]);
            if moving.is_empty() {
                return;
            }
            for &class in &moving {
                let k = class as usize;
                // Where the slope would be zero if it changed evenly.
                let share = entry[k] / (entry[k] - self.slope_along_step(k));
                let share = share.clamp(0.1, 0.9);
                self.move_by_step(k, share as f32 - 1.0);
                self.scale_step(k, share as f32);
                entry[k] *= share;
            }
        }
    }

    fn slope_along_step(&self, class: usize) -> f64 {
        dot(self.row(&self.gradient, class), self.row(&self.step.weights, class))
    }

    fn move_by_step(&mut self, class: usize, share: f32) {
        let (classes, cols) = (self.constant.len(), self.x.cols());
        let range = class * cols..(class + 1) * cols;
        add_scaled(&mut self.now.weights[range.clone()], share, &self.step.weights[range]);
        let steps = self.step.margins.chunks(classes * BLOCK);
        for (now, step) in self.now.margins.chunks_mut(classes * BLOCK).zip(steps) {
            let range = class * BLOCK..(class + 1) * BLOCK;
            add_scaled(&mut now[range.clone()], share, &step[range]);
        }
    }

    fn scale_step(&mut self, class: usize, share: f32) {
        let (classes, cols) = (self.constant.len(), self.x.cols());
        let weights = &mut self.step.weights[class * cols..(class + 1) * cols];
        for v in weights {
            *v *= share;
        }
        for step in self.step.margins.chunks_mut(classes * BLOCK) {
            let part = &mut step[class * BLOCK..(class + 1) * BLOCK];
            for v in part {
                *v *= share;
            }
        }
    }
}

/// Eight running sums: one alone would wait for itself, and its order is as good as theirs.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a8.remainder().iter().zip(b8.remainder());
    let rest: f64 = rest.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    for (a, b) in a8.zip(b8) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += f64::from(*a) * f64::from(*b);
        }
    }
    sums.iter().sum::<f64>() + rest
}

fn norm(a: &[f32]) -> f64 {
    dot(a, a).sqrt()
}

fn add_scaled(to: &mut [f32], scale: f32, from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t += scale * f);
}

#[cfg(test)]
mod tests {
    use super::*;
    use blnn_kernels::Matrix;

    fn data() -> (Matrix, Vec<u32>) {
        let x = Matrix::from_fn(200, 6, |i, j| ((i * (j + 3) * 13 + j * 29) as f32 * 0.37).sin());
        let class = |i: usize| {
            u32::from(x.get(i, 0) + 0.6 * x.get(i, 3) > 0.4) + u32::from(i.is_multiple_of(11))
        };
        let targets = (0..200).map(class).collect();
        (x, targets)
    }

    /// Gradient of liblinear's objective, in double precision and by its definition.
    fn gradient(x: &Matrix, targets: &[u32], class: u32, w: &[f32], c: f64) -> f64 {
        let mut g: Vec<f64> = w.iter().map(|&w| f64::from(w)).collect();
        for (i, &t) in targets.iter().enumerate() {
            let y = if t == class { 1.0 } else { -1.0 };
            let pull = -c * y / (1.0 + (y * dot(x.row(i), w)).exp());
            g.iter_mut().zip(x.row(i)).for_each(|(g, &x)| *g += pull * f64::from(x));
        }
        g.iter().map(|g| g * g).sum::<f64>().sqrt()
    }

    #[test]
    fn every_fit_of_the_path_reaches_liblinears_tolerance() {
        let (x, targets) = data();
        let packed = TallMatrix::new(&x);
        let mut fits = OneVsRest::new(&packed, &targets, 3);
        for exponent in -10..=10 {
            let c = 2.0_f64.powi(exponent);
            fits.fit(c);
            for class in 0..3 {
                let w = fits.row(fits.weights(), class as usize);
                let (now, start) = (
                    gradient(&x, &targets, class, w, c),
                    gradient(&x, &targets, class, &[0.0; 6], c),
                );
                // The rarest class holds a fifth of the rows or less.
                assert!(now < 1.1e-4 * 0.5 * start, "class {class}, C = {c}: {now} of {start}");
            }
        }
    }

    #[test]
    fn a_start_from_far_away_gets_there_too() {
        let (x, targets) = data();
        let packed = TallMatrix::new(&x);
        let mut fits = OneVsRest::new(&packed, &targets, 3);
        fits.start_from(&[3.0; 18]);
        fits.fit(16.0);
        for class in 0..3 {
            let now = gradient(&x, &targets, class, fits.row(fits.weights(), class as usize), 16.0);
            let start = gradient(&x, &targets, class, &[0.0; 6], 16.0);
            assert!(now < 1.1e-4 * 0.5 * start, "class {class}: {now} of {start}");
        }
    }

    #[test]
    fn a_class_without_rows_is_constant() {
        let x = Matrix::from_fn(20, 2, |i, j| (i * 3 + j) as f32 * 0.1);
        let packed = TallMatrix::new(&x);
        let mut fits = OneVsRest::new(&packed, &[1; 20], 2);
        fits.fit(1.0);
        assert_eq!(fits.constant(), [Some(false), Some(true)]);
        assert!(fits.weights().iter().all(|&w| w == 0.0));
    }
}
