//! Figure 5: maps of raw features and embeddings by t-SNE, and their compactness.

use std::collections::BTreeMap;
use std::path::Path;

use blnn_kernels::Matrix;

use crate::atomic;
use crate::data::npy;
use crate::error::Result;
use crate::eval::{EvalPlan, Task, evaluate};
use crate::graph::{Features, Graph};
use crate::project::{TsneOptions, tsne};
use crate::published::{self, Metric};

use super::charts::keep;
use super::execute::Work;
use super::figure;
use super::job::TrainingJob;
use super::report::{Aggregate, Report, Row};
use super::rows::rows;
use super::trained::{labels_of, write_text};

/// The name of the row of untrained features, as in the published table.
const RAW: &str = "raw features";

/// Adds rows and maps of one data set. Compactness is taken of all seeds, maps of the first.
pub(super) fn add(
    work: &mut Work<'_>,
    report: &mut Report,
    dataset: &'static str,
    jobs: &[TrainingJob],
) -> Result<()> {
    let graph = work.graph(dataset)?;
    let raw = raw_row(work, &graph)?;
    let mut found = vec![raw];
    found.append(&mut rows(report.target, jobs, &work.results, &BTreeMap::new()));
    let maps = work.options.out.join("maps");
    std::fs::create_dir_all(&maps).map_err(|e| crate::error::Error::io("create", &maps, e))?;
    let file = maps.join(format!("{dataset}-raw.npy"));
    let features = || Ok(dense(graph.features()));
    let points = map_of(work, &file, &graph.fingerprint(), features)?;
    picture(work, report, &graph, &found[0], &points)?;
    for job in jobs.iter().filter(|job| job.plan().seed() == 1) {
        let run = work.results.get(&job.key());
        let Some(embedding) = run.and_then(|run| run.embedding.clone()) else {
            continue;
        };
        let file = maps.join(format!("{}.npy", job.key()));
        let points = map_of(work, &file, &embedding.sha256, || embedding.read())?;
        let row = found.iter().find(|row| row.method == job.label());
        if let Some(row) = row {
            picture(work, report, &graph, row, &points)?;
        }
    }
    report.rows.append(&mut found);
    Ok(())
}

fn raw_row(work: &mut Work<'_>, graph: &Graph) -> Result<Row> {
    let mut row = Row::empty(graph.name(), RAW, Metric::Compactness.key());
    row.published = published::value(Metric::Compactness, RAW, graph.name());
    let plan = EvalPlan { tasks: vec![Task::Compactness], ..EvalPlan::default() };
    let features = dense(graph.features());
    let scores = evaluate(&features, labels_of(graph)?, None, &plan, work.threads, &mut |_| ());
    match scores {
        Ok(scores) => {
            let value = scores.compactness.into_iter().collect::<Vec<_>>();
            row.last = Aggregate::of(&value, row.published);
        }
        // A node without any attribute points nowhere.
        Err(error) => row.remark = Some(error.to_string()),
    }
    Ok(row)
}

fn dense(features: &Features) -> Matrix {
    match features {
        Features::Dense(x) => x.clone(),
        Features::Sparse(x) => {
            let mut out = Matrix::zeros(x.pattern().rows(), x.pattern().cols());
            for i in 0..out.rows() {
                let (columns, values) = x.row(i);
                for (&j, &value) in columns.iter().zip(values) {
                    out.row_mut(i)[j as usize] = value;
                }
            }
            out
        }
    }
}

/// The map kept in `file`, if it is of the rows whose fingerprint is `of`; else a new one.
fn map_of(
    work: &mut Work<'_>,
    file: &Path,
    of: &str,
    rows: impl FnOnce() -> Result<Matrix>,
) -> Result<Matrix> {
    let note = file.with_extension("source");
    let same = std::fs::read_to_string(&note).is_ok_and(|kept| kept == of);
    if same && file.exists() {
        return npy::read_file(file)?.into_matrix();
    }
    let rows = rows()?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    work.watcher.busy(&format!("mapping {name} by t-SNE"));
    let points = tsne(&rows, &TsneOptions::default(), work.threads, &mut |_, _| ())?;
    atomic::replace(file, |out| npy::write_f32_matrix(out, &points))?;
    write_text(&note, of)?;
    Ok(points)
}

fn picture(
    work: &Work<'_>,
    report: &mut Report,
    graph: &Graph,
    row: &Row,
    points: &Matrix,
) -> Result<()> {
    // The map is that of one run, so the number must be that run's, not a mean over seeds.
    let of_run = row.runs.iter().find(|run| run.seed == 1).and_then(|run| run.last);
    let compactness = of_run.or(row.last.as_ref().map(|last| last.mean));
    let compactness = compactness.map(|c| format!(" ({c:.4})")).unwrap_or_default();
    let epochs = row.runs.first().map(|run| format!(" after {} epochs", run.epochs));
    let epochs = epochs.unwrap_or_default();
    let title =
        format!("{} on {}: {}{epochs}{compactness}", report.place, graph.name(), row.method);
    let svg = figure::map(&title, points, labels_of(graph)?, graph.class_names())?;
    let stem: String = row
        .method
        .chars()
        .map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let stem = format!("map-{}-{}", graph.name(), stem.trim_matches('-').replace("--", "-"));
    keep(work.options, report, &stem, &svg)
}
