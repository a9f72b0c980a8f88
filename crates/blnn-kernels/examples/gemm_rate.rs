//! Rates of the dense products beside the `gemm` crate, one thread.
#![allow(clippy::print_stdout, missing_docs, reason = "scratch")]
use blnn_kernels::{Panels, product::*};
use std::time::Instant;
fn best(mut f: impl FnMut()) -> f64 {
    f();
    (0..15)
        .map(|_| {
            let t = Instant::now();
            f();
            t.elapsed().as_secs_f64()
        })
        .fold(f64::MAX, f64::min)
}
fn main() {
    for (m, k, n) in [
        (112, 128, 512),
        (112, 512, 128),
        (1120, 256, 128),
        (112, 256, 512),
        (112, 512, 256),
    ] {
        let reps = 40;
        let a = Panels::from_matrix(&blnn_kernels::Matrix::from_fn(m, k, |i, j| {
            (i + j) as f32 * 0.01
        }));
        let b = Panels::from_matrix(&blnn_kernels::Matrix::from_fn(k, n, |i, j| {
            (i + j) as f32 * 0.01
        }));
        let mut o = Panels::zeros(m, n);
        let gf = 2e-9 * (m * k * n * reps) as f64;
        let t = best(|| {
            for _ in 0..reps {
                product(
                    &a.rows_ref(0..m),
                    &b,
                    &mut o.rows_mut(0..m),
                    Store::Overwrite,
                )
            }
        });
        let mut w = Panels::zeros(k, n);
        let t2 = best(|| {
            for _ in 0..reps {
                transposed_product(&a.rows_ref(0..m), &o.rows_ref(0..m), &mut w, Store::Add)
            }
        });
        let (aa, bb) = (a.to_matrix(), b.to_matrix());
        let mut cc = vec![0.0; m * n];
        use blnn_kernels::gemm::*;
        let t3 = best(|| {
            for _ in 0..reps {
                gemm(
                    Operand::new(aa.data(), m, k),
                    Operand::new(bb.data(), k, n),
                    &mut cc,
                    Into::Overwrite,
                )
            }
        });
        let mut dd = vec![0.0; k * n];
        let t4 = best(|| {
            for _ in 0..reps {
                gemm(
                    Operand::new(aa.data(), m, k).transposed(),
                    Operand::new(&cc, m, n),
                    &mut dd,
                    Into::Add,
                )
            }
        });
        println!(
            "{m}x{k}x{n}: ours {:.0} T {:.0}; gemm crate {:.0} T {:.0} GF/s",
            gf / t,
            gf / t2,
            gf / t3,
            gf / t4
        );
    }
}
