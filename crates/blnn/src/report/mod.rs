//! [`Report`]: one page that shows a run, in one file that needs no network.
//!
//! The page's own files are in `page/`: a template, a style sheet and the scripts. The charting
//! library is in `vendor/`. This module knows charts, maps and tables, and nothing of training.

mod packed;
mod page;

use std::io::{self, Write};

use serde::Serialize;

pub use packed::Packed;

/// Everything a page shows. Texts are data: the page never reads them as HTML.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// A line below the heading.
    pub subtitle: String,
    /// The most telling numbers, first.
    pub figures: Vec<Figure>,
    /// What the reader should be warned of.
    pub warnings: Vec<String>,
    /// All nodes on a plane, where there are embeddings.
    pub map: Option<Map>,
    /// Curves and bars.
    pub charts: Vec<Chart>,
    /// Every setting, as the text of a config file.
    pub config: String,
    /// Where the result comes from: names and values.
    pub provenance: Vec<(String, String)>,
}

/// A number with its meaning.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What it is.
    pub label: String,
    /// The number as people read it.
    pub value: String,
    /// A remark in small print; may be empty.
    pub note: String,
}

/// The part of the page a chart belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    /// How training went.
    Training,
    /// What the embeddings know of the classes.
    Classes,
}

/// How a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Lines over numbers.
    Lines,
    /// Bars over names.
    Bars,
}

/// One chart.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// A short name for links and files.
    pub id: String,
    /// Where it stands.
    pub section: Section,
    /// How it is drawn.
    pub kind: Kind,
    /// The heading.
    pub title: String,
    /// What it says, in a sentence.
    pub note: String,
    /// What the horizontal axis shows.
    pub x_label: String,
    /// What the vertical axis shows.
    pub y_label: String,
    /// Whether values are shares from 0 to 1, shown in percent.
    pub percent: bool,
    /// What can be shown, one at a time; the reader chooses by name if there are several.
    pub variants: Vec<Variant>,
}

/// The contents of a chart.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// What the reader chooses it by.
    pub name: String,
    /// The names below bars; unused for lines.
    pub categories: Vec<String>,
    /// The lines, or one series of bars.
    pub series: Vec<Series>,
}

/// One line or one row of bars.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// Horizontal and vertical position; for bars, the category's number and the value.
    pub points: Vec<(f64, f64)>,
}

/// Nodes on a plane.
#[derive(Clone, Debug, Serialize)]
pub struct Map {
    /// How the map was made, in a sentence.
    pub note: String,
    /// Number of nodes of the graph; the map may show fewer.
    pub nodes: usize,
    /// The ids of the nodes shown, unless they are 0, 1, 2 and so on.
    pub ids: Option<Vec<String>>,
    /// Horizontal position of each node, 0 to 65,535.
    pub x: Packed,
    /// Vertical position of each node, in the same unit, upwards.
    pub y: Packed,
    /// What nodes can be coloured by.
    pub colourings: Vec<Colouring>,
    /// Numbers of the nearest nodes shown, nearest first, the same count for each node.
    pub neighbours: Packed,
    /// Cosines of those neighbours: −1 to 1 as 0 to 65,535.
    pub cosines: Packed,
}

/// A value for each node of a map.
#[derive(Clone, Debug, Serialize)]
pub struct Colouring {
    /// What the values are.
    pub name: String,
    /// Names of the values if they are categories; absent if they are numbers.
    pub categories: Option<Vec<String>>,
    /// The value of each node.
    pub values: Packed,
}

impl Map {
    /// Positions of the rows of a two-column matrix, both axes in one unit.
    pub fn positions(points: &blnn_kernels::Matrix) -> (Packed, Packed) {
        let column = |j: usize| (0..points.rows()).map(move |i| f64::from(points.get(i, j)));
        let low = |j| column(j).fold(f64::INFINITY, f64::min);
        let extent = |j| column(j).fold(f64::NEG_INFINITY, f64::max) - low(j);
        let unit = extent(0).max(extent(1)).max(f64::MIN_POSITIVE) / 65_535.0;
        let pack = |j| Packed::words(column(j).map(|v| ((v - low(j)) / unit).round() as u16));
        (pack(0), pack(1))
    }
}

impl Report {
    /// Writes the page.
    ///
    /// # Errors
    /// If `out` refuses the bytes.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        page::write(self, out)
    }
}
