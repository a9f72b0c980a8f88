//! [`Understood`]: what was made of the user's files, so that nothing happens in silence.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use serde::Serialize;

use super::encoding::{ColumnUse, Fate};
use super::known::Unseen;
use super::structural::Structural;
use crate::text::grouped;

/// What was understood of the files of a graph. [`Display`](fmt::Display) writes it for people,
/// a line a subject.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Understood {
    /// The files that were read.
    pub files: Vec<FileNote>,
    /// Number of nodes.
    pub nodes: usize,
    /// How the nodes are called.
    pub ids: IdKind,
    /// Number of edges that the file lists.
    pub listed: usize,
    /// Number of edges of the graph; one between two nodes, whatever the direction.
    pub edges: usize,
    /// Number of listed edges that repeat another one, in the same or the other direction.
    pub merged: usize,
    /// Number of listed edges from a node to itself, which are dropped.
    pub self_loops: usize,
    /// Number of nodes without any edge.
    pub isolated: usize,
    /// Number of features.
    pub features: usize,
    /// Where the features come from.
    pub feature_source: FeatureSource,
    /// Texts that a model does not know, where features were made for one.
    pub unseen: Vec<Unseen>,
    /// The labels, if there are any.
    pub labels: Option<LabelNote>,
    /// Number of splits for the classification that came with the graph.
    pub splits: usize,
}

/// One file and how it was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileNote {
    /// The file.
    pub path: PathBuf,
    /// How it was read: format, header, columns.
    pub read_as: String,
    /// What was guessed or passed over in it, a sentence each.
    pub remarks: Vec<String>,
    /// Seconds it took to read the file.
    pub seconds: f64,
}

/// How nodes are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdKind {
    /// By the number of their row, from 0.
    Rows,
    /// By whole numbers of the user.
    Numbers,
    /// By texts.
    Texts,
}

/// Where the features come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureSource {
    /// From columns of the node table.
    Columns(Vec<ColumnUse>),
    /// From a matrix, and what was done to it.
    Matrix(&'static str),
    /// Computed from the edges.
    Edges {
        /// What is computed.
        kind: Structural,
        /// Why.
        why: Why,
        /// Columns of the node table, none of which became a feature.
        columns: Vec<ColumnUse>,
    },
}

/// Why features are computed from the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The user said so.
    Told,
    /// The nodes have no others.
    NoOthers,
    /// The model was trained with such features.
    Trained,
}

/// The labels that were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabelNote {
    /// The column or file.
    pub name: String,
    /// Each class with its number of nodes.
    pub classes: Vec<(String, usize)>,
    /// Number of nodes that have none: they are trained on and not scored.
    pub without: usize,
}

impl Understood {
    /// A line a subject: what it is about, and what is said.
    pub fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        for file in &self.files {
            let path = file.path.display();
            lines.push(("read".to_owned(), format!("{path}: {}", file.read_as)));
            for remark in &file.remarks {
                lines.push(("note".to_owned(), format!("{path}: {remark}")));
            }
        }
        lines.push(("nodes".into(), self.nodes_line()));
        lines.push(("edges".into(), self.edges_line()));
        lines.push(("features".into(), self.features_line()));
        let unused = self.left_out();
        if !unused.is_empty() {
            lines.push(("left out".into(), unused));
        }
        for unseen in &self.unseen {
            lines.push(("unseen".into(), unseen_line(unseen)));
        }
        lines.push(("labels".into(), self.labels_line()));
        if self.splits > 0 {
            lines.push(("splits".into(), format!("{}, used when scoring", grouped(self.splits))));
        }
        lines
    }

    fn nodes_line(&self) -> String {
        let ids = match self.ids {
            IdKind::Rows => "called 0, 1, 2 and so on",
            IdKind::Numbers => "called by whole numbers",
            IdKind::Texts => "called by texts",
        };
        let isolated = match self.isolated {
            0 => "none isolated".to_owned(),
            count => format!("{} isolated (no edge)", grouped(count)),
        };
        format!("{}, {ids}; {isolated}", grouped(self.nodes))
    }

    fn edges_line(&self) -> String {
        let mut line = format!("{} from {} listed", grouped(self.edges), grouped(self.listed));
        if self.merged > 0 {
            let repeated =
                if self.merged == 1 { "duplicate or reverse" } else { "duplicates or reverses" };
            let _ = write!(line, "; {} {repeated} merged", grouped(self.merged));
        }
        if self.self_loops > 0 {
            let loops = if self.self_loops == 1 { "self-loop" } else { "self-loops" };
            let _ = write!(line, "; {} {loops} dropped", grouped(self.self_loops));
        }
        line
    }

    fn columns(&self) -> &[ColumnUse] {
        match &self.feature_source {
            FeatureSource::Columns(columns) | FeatureSource::Edges { columns, .. } => columns,
            FeatureSource::Matrix(_) => &[],
        }
    }

    fn features_line(&self) -> String {
        let count = grouped(self.features);
        match &self.feature_source {
            FeatureSource::Matrix(how) => format!("{count}, {how}"),
            FeatureSource::Edges { kind, why, .. } => {
                let why = match why {
                    Why::Told => "as told",
                    Why::NoOthers => "there are no others; see --features",
                    Why::Trained => "as at training",
                };
                format!("{count} computed from the edges: {} ({why})", kind.name())
            }
            FeatureSource::Columns(columns) => {
                let with = |wanted: &dyn Fn(&Fate) -> bool| {
                    let used = columns.iter().filter(|c| wanted(&c.fate));
                    used.map(|c| c.column.as_str()).collect::<Vec<_>>()
                };
                let groups = [
                    (with(&|f| *f == Fate::Standardised), "numbers, standardised"),
                    (with(&|f| *f == Fate::Scaled), "numbers, mostly 0, scaled"),
                    (with(&|f| *f == Fate::Flags), "0 or 1"),
                    (with(&|f| matches!(f, Fate::OneHot(_))), "texts, one-hot"),
                ];
                let groups = groups.iter().filter(|(names, _)| !names.is_empty());
                let groups = groups.map(|(names, how)| format!("{} ({how})", listed(names)));
                format!("{count}: {}", groups.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn left_out(&self) -> String {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for column in self.columns() {
            let Fate::LeftOut(why) = &column.fate else { continue };
            match reasons.iter_mut().find(|(reason, _)| reason == why) {
                Some((_, names)) => names.push(&column.column),
                None => reasons.push((why, vec![&column.column])),
            }
        }
        let reasons = reasons.iter().map(|(why, names)| format!("{} ({why})", listed(names)));
        reasons.collect::<Vec<_>>().join(", ")
    }

    fn labels_line(&self) -> String {
        const SHOWN: usize = 6;
        let Some(labels) = &self.labels else {
            return "none, so no scores (--label tells their column, or a .npy file of them)"
                .into();
        };
        let count = labels.classes.len();
        let shown = labels.classes.iter().take(SHOWN);
        let shown = shown.map(|(name, nodes)| format!("{name} ×{}", grouped(*nodes)));
        let more = if count > SHOWN { ", …" } else { "" };
        let shown = shown.collect::<Vec<_>>().join(", ");
        let mut line =
            format!("{}: {} classes ({shown}{more}), for scores only", labels.name, grouped(count));
        if labels.without > 0 {
            let (without, nodes) = (grouped(labels.without), grouped(self.nodes));
            let _ = write!(line, "; {without} of {nodes} nodes have none and are not scored");
        }
        line
    }
}

impl fmt::Display for Understood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (subject, line) in self.lines() {
            writeln!(f, "{subject:<9} {line}")?;
        }
        Ok(())
    }
}

fn unseen_line(unseen: &Unseen) -> String {
    let Unseen { column, nodes, example } = unseen;
    let (have, texts) = if *nodes == 1 { ("has", "a text") } else { ("have", "texts") };
    let nodes = if *nodes == 1 { "1 node".into() } else { format!("{} nodes", grouped(*nodes)) };
    format!(
        "{column}: {nodes} {have} {texts} that training never saw, such as `{example}`: no feature \
         of `{column}` is set there"
    )
}

/// Some names, the first few of them.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {} more", grouped(more)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, fate: Fate) -> ColumnUse {
        ColumnUse { column: name.into(), fate }
    }

    #[test]
    fn everything_is_told() {
        let understood = Understood {
            files: vec![FileNote {
                path: "e.csv".into(),
                read_as: "comma".into(),
                remarks: vec!["line 1 is taken as data".into()],
                seconds: 0.5,
            }],
            nodes: 1234,
            ids: IdKind::Texts,
            listed: 20,
            edges: 15,
            merged: 4,
            self_loops: 1,
            isolated: 2,
            features: 5,
            feature_source: FeatureSource::Columns(vec![
                column("age", Fate::Standardised),
                column("land", Fate::OneHot(4)),
                column("title", Fate::LeftOut("too many".into())),
                column("note", Fate::LeftOut("too many".into())),
            ]),
            unseen: vec![Unseen { column: "land".into(), nodes: 1, example: "it".into() }],
            labels: Some(LabelNote {
                name: "topic".into(),
                classes: vec![("ai".into(), 1000), ("db".into(), 230)],
                without: 4,
            }),
            splits: 0,
        };
        let wanted = "\
read      e.csv: comma
note      e.csv: line 1 is taken as data
nodes     1,234, called by texts; 2 isolated (no edge)
edges     15 from 20 listed; 4 duplicates or reverses merged; 1 self-loop dropped
features  5: age (numbers, standardised), land (texts, one-hot)
left out  title, note (too many)
unseen    land: 1 node has a text that training never saw, such as `it`: no feature of `land` is set there
labels    topic: 2 classes (ai ×1,000, db ×230), for scores only; 4 of 1,234 nodes have none and are not scored
";
        assert_eq!(understood.to_string(), wanted);
    }
}
