//! scratch
#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "scratch"
)]
use blnn_kernels::{gather::*, masked::*, *};
use std::time::Instant;
fn best(mut f: impl FnMut()) -> f64 {
    f();
    (0..9)
        .map(|_| {
            let t = Instant::now();
            f();
            t.elapsed().as_secs_f64()
        })
        .fold(f64::MAX, f64::min)
}
fn rnd(s: &mut u64) -> f64 {
    *s = s
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*s >> 33) as f64 / (1u64 << 31) as f64
}
fn main() {
    let t = Threads::new(1);
    let mut s = 7u64;
    for (name, n, f, d, h) in [
        ("photo", 7650, 745, 0.347, 256),
        ("cs", 18333, 6805, 0.0088, 512),
        ("physics", 34493, 8415, 0.0039, 256),
    ] {
        let (mut off, mut idx) = (vec![0], vec![]);
        for _ in 0..n {
            for j in 0..f {
                let p = if d < 0.1 {
                    d * 0.25 * (f as f64 / (j + 1) as f64).sqrt() * 2.0
                } else {
                    d
                };
                if rnd(&mut s) < p {
                    idx.push(j as u32)
                }
            }
            off.push(idx.len());
        }
        let nnz = idx.len();
        let x = Csr::new(Pattern::new(f, off, idx).unwrap(), vec![1.0; nnz]).unwrap();
        let mut m = MaskedInputs::new(&x, &t);
        let flags: Vec<KeptBy> = (0..f)
            .map(|_| KeptBy::new(rnd(&mut s) > 0.1, rnd(&mut s) > 0.2))
            .collect();
        let tr = best(|| m.set_masks(flags.iter().copied(), &t));
        let w = Panels::from_matrix(&Matrix::from_fn(f, h, |i, j| (i + j) as f32 * 1e-3));
        let (mut a, mut b) = (Panels::zeros(n, h), Panels::zeros(n, h));
        let sc = vec![1.0; n];
        let t1 = best(|| m.product(&w, [&sc, &sc], [&mut a, &mut b], &t));
        let mut dw = Panels::zeros(f, h);
        let t2 = best(|| m.gradient([Some(&a), Some(&a), Some(&b)], &mut dw, &t));
        let ops = nnz as f64 * 0.98 * (h / 32) as f64;
        println!(
            "{name}: nnz {nnz} order {:.1} ms, product {:.1} ms ({:.2} ns/row), gradient {:.1} ms ({:.2} ns/row)",
            tr * 1e3,
            t1 * 1e3,
            t1 / ops * 1e9,
            t2 * 1e3,
            t2 / ops * 1e9
        );
    }
    for (n, deg) in [(7650usize, 31usize), (13752, 36), (34493, 14)] {
        let (mut off, mut idx) = (vec![0], vec![]);
        for i in 0..n {
            let k = (rnd(&mut s) * 2.0 * deg as f64) as usize;
            let mut v: Vec<u32> = (0..k)
                .map(|_| {
                    if rnd(&mut s) < 0.5 {
                        ((i as f64 + rnd(&mut s) * 800.0) as usize % n) as u32
                    } else {
                        (rnd(&mut s) * n as f64) as u32
                    }
                })
                .collect();
            v.sort();
            v.dedup();
            idx.extend(v);
            off.push(idx.len());
        }
        let e = idx.len() + n;
        let p = Pattern::new(n, off, idx).unwrap();
        let l = Selection::all(&p, true, &t);
        let x = Panels::zeros(n, 256);
        let mut o = Panels::zeros(n, 256);
        let sc = vec![1.0; n];
        let t1 = best(|| gather_sum(&l, &x, &sc, &mut o, &t));
        println!(
            "gather n {n} deg {deg}: {:.1} ms, {:.2} ns/row",
            t1 * 1e3,
            t1 / (e * 8) as f64 * 1e9
        );
    }
    for (m, k, n) in [
        (112, 128, 512),
        (112, 512, 128),
        (7650, 256, 128),
        (7650, 128, 256),
    ] {
        use blnn_kernels::product::*;
        let a = Panels::from_matrix(&Matrix::from_fn(m, k, |i, j| (i + j) as f32 * 0.01));
        let b = Panels::from_matrix(&Matrix::from_fn(k, n, |i, j| (i + j) as f32 * 0.01));
        let mut o = Panels::zeros(m, n);
        let mut w = Panels::zeros(k, n);
        let reps = if m > 1000 { 1 } else { 40 };
        let gf = 2e-9 * (m * k * n * reps) as f64;
        let t1 = best(|| {
            for _ in 0..reps {
                product_all(&a, &b, None, &mut o, &t)
            }
        });
        let t2 = best(|| {
            for _ in 0..reps {
                transposed_product_all(&a, &o, &mut w, Store::Overwrite, &t)
            }
        });
        println!(
            "{m}x{k}x{n}: {:.0} GF/s, transposed {:.0} GF/s",
            gf / t1,
            gf / t2
        );
    }
}
