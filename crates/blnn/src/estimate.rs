//! What a run will take before it starts: memory, disk and time.
//!
//! Memory is counted from the sizes of graph and model, see [`MemoryEstimate`]; [`Pace`] measures
//! a few epochs. [`available_memory`] says what the machine has left, and [`check_memory`] refuses
//! a run that would not fit.

mod available;
mod pace;

pub use available::{Available, available_memory};
pub use pace::Pace;

use crate::collapse::MAX_ROWS;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::Plan;
use crate::run_report::{MapMethod, ReportOptions};
use crate::sizes::{Attributes, Sizes};
use crate::trainer::footprint::{Footprint, pattern};

/// The program itself: code, stacks, and what its allocator holds back.
const PROGRAM: u64 = 14_000_000;
/// What was freed in pieces up to this size stays with the allocator (32 MB in glibc).
const HELD_BACK: u64 = 32_000_000;
/// Large allocations are rounded to large pages, and small ones leave gaps.
const ROUNDING: f64 = 0.02;
/// Bytes that a node's name takes beside its letters: a pointer, two lengths, the heap's own.
const NAME_OVERHEAD: u64 = 48;

/// What a run does beside training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extras {
    /// The embedding is scored, where there are labels.
    pub scored: bool,
    /// A page is written at the end.
    pub report: bool,
}

/// The most memory each part of a run holds, in bytes. Parts follow each other, so that the peak
/// of the run is the largest of them.
///
/// ```
/// use blnn::estimate::{Extras, MemoryEstimate};
/// use blnn::{Config, Sizes, data};
/// let plan = Config::new().resolve("cora")?;
/// let sizes = Sizes::of(&data::load("cora", &[])?);
/// let extras = Extras { scored: true, report: true };
/// let memory = MemoryEstimate::new(&sizes, &plan, extras)?;
/// assert!((50_000_000..200_000_000).contains(&memory.peak()));
/// let larger = MemoryEstimate::new(&sizes.scaled_to(1_000_000), &plan, extras)?;
/// assert!(larger.peak() > 10_000_000_000);
/// # Ok::<(), blnn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MemoryEstimate {
    /// Reading the graph and preparing it for training.
    pub preparing: u64,
    /// A step: what `blnn bench` measures.
    pub training: u64,
    /// A checkpoint, with the embedding that is checked for a collapse.
    pub saving: u64,
    /// The scores of the embedding; as much as training where there are none.
    pub scoring: u64,
    /// The page that shows the run; 0 without one.
    pub reporting: u64,
}

impl MemoryEstimate {
    /// The estimate for a graph of these sizes.
    ///
    /// # Errors
    /// None that a valid plan can cause.
    pub fn new(sizes: &Sizes, plan: &Plan, extras: Extras) -> Result<Self> {
        let footprint = Footprint::new(sizes, plan)?;
        let graph = graph_bytes(sizes);
        let embedding = 4 * (sizes.nodes * plan.embedding_width) as u64;
        // The graph in the order of training, and lists of its rows, live until all is prepared.
        let copies = copied_bytes(sizes) + 24 * sizes.nodes as u64;
        let training = graph + copies.min(HELD_BACK) + footprint.total();
        let held = training + embedding + footprint.embedding;
        let scored = extras.scored && sizes.labelled;
        let scoring = if scored { held + scoring_bytes(sizes, plan) } else { training };
        let report = graph + reporting_bytes(sizes, plan);
        let rounded = |bytes: u64| PROGRAM + bytes + (bytes as f64 * ROUNDING) as u64;
        Ok(Self {
            preparing: rounded(graph + copies + footprint.inputs + footprint.views),
            training: rounded(training),
            saving: rounded(held + footprint.saved.max(health_bytes(plan)).max(embedding)),
            scoring: rounded(scoring),
            reporting: if extras.report { rounded(report) } else { 0 },
        })
    }

    /// The peak of the whole run.
    pub fn peak(&self) -> u64 {
        let Self { preparing, training, saving, scoring, reporting } = *self;
        [preparing, training, saving, scoring, reporting].into_iter().max().unwrap_or(0)
    }
}

/// Adjacency and attributes.
fn copied_bytes(sizes: &Sizes) -> u64 {
    let attributes = match sizes.attributes {
        Attributes::Dense => 4 * (sizes.nodes * sizes.features) as u64,
        Attributes::Sparse { values, .. } => pattern(sizes.nodes, values) + 4 * values as u64,
    };
    pattern(sizes.nodes, sizes.entries) + attributes
}

fn graph_bytes(sizes: &Sizes) -> u64 {
    let nodes = sizes.nodes as u64;
    let labels = if sizes.labelled { 4 * nodes } else { 0 };
    let names = if sizes.id_bytes > 0 { sizes.id_bytes as u64 + NAME_OVERHEAD * nodes } else { 0 };
    copied_bytes(sizes) + labels + names
}

/// The rows that are looked at, in `f64`, twice, and their covariance.
fn health_bytes(plan: &Plan) -> u64 {
    let (rows, width) = (MAX_ROWS as u64, plan.embedding_width as u64);
    8 * (2 * rows * width + 2 * width * width)
}

/// Rows of length one, the same rotated, those of the classifiers at work, the clusters' copy and
/// what was freed between them.
fn scoring_bytes(sizes: &Sizes, plan: &Plan) -> u64 {
    6 * 4 * (sizes.nodes * plan.embedding_width) as u64
}

/// Nodes on the map.
fn shown_nodes(sizes: &Sizes) -> u64 {
    sizes.nodes.min(ReportOptions::default().most_nodes) as u64
}

/// The embedding and its rows of length one, neighbours, a map and the page as text.
fn reporting_bytes(sizes: &Sizes, plan: &Plan) -> u64 {
    let laid_out = match MapMethod::after_training(sizes.nodes) {
        MapMethod::Tsne => 1500,
        MapMethod::Pca => 200,
    };
    let shown = shown_nodes(sizes);
    3 * 4 * (sizes.nodes * plan.embedding_width) as u64 + shown * (400 + laid_out)
}

/// Bytes of the files that a run leaves, other formats of the embeddings not counted.
///
/// # Errors
/// None that a valid plan can cause.
pub fn disk_bytes(sizes: &Sizes, plan: &Plan, extras: Extras) -> Result<u64> {
    let nodes = sizes.nodes as u64;
    let embeddings = 4 * nodes * plan.embedding_width as u64;
    let ids = sizes.id_bytes as u64 + nodes * if sizes.id_bytes > 0 { 1 } else { 7 };
    // A line of the metrics every tenth epoch, a little more with scores.
    let metrics = 250 * (plan.epochs as u64 / 10 + 2);
    let page = if extras.report { 1_200_000 + 130 * shown_nodes(sizes) } else { 0 };
    Ok(Footprint::new(sizes, plan)?.saved + embeddings + ids + metrics + page)
}

/// Bytes as people read them: "812 MB", "9.3 GB", in powers of ten.
///
/// ```
/// let shown = [17, 45_300, 812_000_000, 9_340_000_000, 1_250_000_000_000].map(blnn::estimate::bytes);
/// assert_eq!(shown, ["17 B", "45 kB", "812 MB", "9.3 GB", "1.2 TB"]);
/// ```
pub fn bytes(count: u64) -> String {
    let value = count as f64;
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.0} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} MB", value / 1e6),
        1_000_000_000..1_000_000_000_000 => format!("{:.1} GB", value / 1e9),
        _ => format!("{:.1} TB", value / 1e12),
    }
}

/// Widths with which a run takes less memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrower {
    /// `hidden_width`, `embedding_width` and `predictor_width`.
    pub widths: [usize; 3],
    /// The peak with them.
    pub peak: u64,
}

/// The widest model that fits into `limit` when all widths are halved again and again, or the
/// narrowest tried if none fits.
///
/// # Errors
/// None that a valid plan can cause.
pub fn narrower(sizes: &Sizes, plan: &Plan, extras: Extras, limit: u64) -> Result<Narrower> {
    const NARROWEST: usize = 16;
    let mut plan = plan.clone();
    loop {
        let halve = |width: usize| (width / 2).max(width.min(NARROWEST));
        let halved = [plan.hidden_width, plan.embedding_width, plan.predictor_width].map(halve);
        [plan.hidden_width, plan.embedding_width, plan.predictor_width] = halved;
        let peak = MemoryEstimate::new(sizes, &plan, extras)?.peak();
        if peak <= limit || halved.iter().all(|&width| width <= NARROWEST) {
            return Ok(Narrower { widths: halved, peak });
        }
    }
}

/// Refuses a run whose peak is above `available`, with a message that names both and a remedy.
/// `settings_fixed` is for a run that is resumed: its widths cannot change.
///
/// # Errors
/// `Memory` if the run does not fit.
///
/// ```
/// use blnn::estimate::{Extras, check_memory};
/// use blnn::{Config, ErrorKind, Sizes, data};
/// let plan = Config::new().resolve("cora")?;
/// let sizes = Sizes::of(&data::load("cora", &[])?).scaled_to(1_000_000);
/// let extras = Extras { scored: false, report: false };
/// let error = check_memory(&sizes, &plan, extras, 8_000_000_000, false).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Memory);
/// assert!(error.to_string().contains("hidden_width="));
/// assert!(check_memory(&sizes, &plan, extras, 1_000_000_000_000, false).is_ok());
/// # Ok::<(), blnn::Error>(())
/// ```
pub fn check_memory(
    sizes: &Sizes,
    plan: &Plan,
    extras: Extras,
    available: u64,
    settings_fixed: bool,
) -> Result<()> {
    let peak = MemoryEstimate::new(sizes, plan, extras)?.peak();
    if peak <= available {
        return Ok(());
    }
    let other_machine = "use a machine with more memory";
    let remedy = if settings_fixed {
        other_machine.to_owned()
    } else {
        let Narrower { widths: [hidden, embedding, predictor], peak } =
            narrower(sizes, plan, extras, available)?;
        let with = format!(
            "hidden_width={hidden}, embedding_width={embedding} and predictor_width={predictor}"
        );
        if peak <= available {
            format!("narrow it (with {with} it takes about {}), or {other_machine}", bytes(peak))
        } else {
            format!("even with {with} it takes about {}; {other_machine}", bytes(peak))
        }
    };
    let message = format!(
        "this run takes about {} of memory, and {} are available; {remedy}",
        bytes(peak),
        bytes(available)
    );
    Err(Error::new(ErrorKind::Memory, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generated;

    const PLAIN: Extras = Extras { scored: false, report: false };

    fn sizes(nodes: usize) -> Sizes {
        Sizes::of(&generated(200, 1).unwrap()).scaled_to(nodes)
    }

    #[test]
    fn a_run_that_fits_starts_and_one_that_does_not_is_refused() {
        let (sizes, plan) = (sizes(100_000), Plan::sample());
        let peak = MemoryEstimate::new(&sizes, &plan, PLAIN).unwrap().peak();
        assert!(check_memory(&sizes, &plan, PLAIN, peak, false).is_ok());
        let error = check_memory(&sizes, &plan, PLAIN, peak - 1, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Memory);
        let text = error.to_string();
        assert!(text.contains(&bytes(peak)), "{text}");
        assert!(
            text.contains("embedding_width=12") || text.contains("embedding_width=6"),
            "{text}"
        );
        let fixed = check_memory(&sizes, &plan, PLAIN, 1, true).unwrap_err().to_string();
        assert!(!fixed.contains("width") && fixed.contains("more memory"), "{fixed}");
        let hopeless = check_memory(&sizes, &plan, PLAIN, 1, false).unwrap_err().to_string();
        assert!(hopeless.contains("even with"), "{hopeless}");
    }

    #[test]
    fn narrower_models_take_less_and_the_widest_that_fits_is_named() {
        let plan = Plan {
            hidden_width: 512,
            embedding_width: 256,
            predictor_width: 1024,
            ..Plan::sample()
        };
        let sizes = sizes(100_000);
        let peak = MemoryEstimate::new(&sizes, &plan, PLAIN).unwrap().peak();
        let half = narrower(&sizes, &plan, PLAIN, peak - 1).unwrap();
        assert_eq!(half.widths, [256, 128, 512]);
        let quarter = narrower(&sizes, &plan, PLAIN, half.peak - 1).unwrap();
        assert_eq!(quarter.widths, [128, 64, 256]);
        assert!(quarter.peak < half.peak && half.peak < peak);
        assert_eq!(narrower(&sizes, &plan, PLAIN, 0).unwrap().widths, [16, 16, 16]);
    }

    #[test]
    fn scores_and_pages_come_on_top() {
        let (sizes, plan) = (sizes(1000), Plan::sample());
        let plain = MemoryEstimate::new(&sizes, &plan, PLAIN).unwrap();
        let all = Extras { scored: true, report: true };
        let full = MemoryEstimate::new(&sizes, &plan, all).unwrap();
        assert_eq!((plain.training, plain.reporting), (full.training, 0));
        assert!(full.scoring > plain.scoring && full.reporting > 0);
        assert!(
            disk_bytes(&sizes, &plan, all).unwrap() > disk_bytes(&sizes, &plan, PLAIN).unwrap()
        );
    }
}
