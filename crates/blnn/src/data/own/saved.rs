//! Features of another graph, made as a saved [`Encoding`] says.

use blnn_kernels::{Pattern, Threads};

use super::OwnGraph;
use super::assemble::{Given, Made};
use super::encoding::{Encoding, Origin};
use super::ids::NodeIds;
use super::known::{Known, mismatch, unseen};
use super::structural::{self, Structural};
use super::understood::FeatureSource;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Features;
use crate::text::grouped;

/// Refuses what cannot lead to the features of `saved`, before large files are read.
pub(super) fn check_request(request: &OwnGraph, saved: &Encoding) -> Result<()> {
    let origin = saved.origin().ok_or_else(|| mismatch("the run has no features".into()))?;
    let Some(wanted) = request.features else {
        return Ok(());
    };
    if origin == Origin::Structure(wanted) {
        return Ok(());
    }
    let trained = saved.describe();
    let message = format!("the run was trained with {trained}; leave the flag out");
    Err(Error::new(ErrorKind::Config, message).at(format_args!("--features {}", wanted.name())))
}

impl Encoding {
    /// What a model was trained with, in words: "the columns `age`, `land` of a table of nodes".
    pub fn describe(&self) -> String {
        const SHOWN: usize = 6;
        match self.origin() {
            Some(Origin::Structure(kind)) => format!("{} features of the edges", kind.name()),
            Some(Origin::Columns) => {
                let known = Known::of(self);
                let names = known.names().iter().take(SHOWN).map(|name| format!("`{name}`"));
                let names = names.collect::<Vec<_>>().join(", ");
                let more = if known.names().len() > SHOWN { " and more" } else { "" };
                let columns = if known.names().len() == 1 { "column" } else { "columns" };
                format!("the {columns} {names}{more} of a table of nodes")
            }
            Some(Origin::Matrix) | None => {
                format!("a matrix of {} features", grouped(self.features.len()))
            }
        }
    }
}

/// The features that `saved` describes, of what the files hold.
pub(super) fn features(
    saved: &Encoding,
    given: Given,
    adjacency: &Pattern,
    ids: &NodeIds,
    threads: &Threads,
) -> Result<Made> {
    match (saved.origin(), given) {
        (Some(Origin::Columns), Given::Table(columns)) => {
            let features = saved.apply(&columns, adjacency.rows())?;
            let source = FeatureSource::Columns(saved.uses(&columns));
            Ok(Made { features, encoding: saved.clone(), source, unseen: unseen(&columns) })
        }
        (Some(Origin::Matrix), Given::Matrix(features)) => {
            check_width(saved, &features)?;
            let source = FeatureSource::Matrix("used as they are, matched by their number");
            Ok(Made { features, encoding: saved.clone(), source, unseen: Vec::new() })
        }
        (Some(Origin::Structure(kind)), given) => {
            structure(saved, kind, given, adjacency, ids, threads)
        }
        (_, given) => Err(other_kind(saved, &given)),
    }
}

fn structure(
    saved: &Encoding,
    kind: Structural,
    given: Given,
    adjacency: &Pattern,
    ids: &NodeIds,
    threads: &Threads,
) -> Result<Made> {
    let columns = match given {
        Given::Table(columns) => saved.uses(&columns),
        Given::Matrix(_) | Given::None => Vec::new(),
    };
    let (features, encoding) = structural::features(kind, adjacency, ids, Some(saved), threads)?;
    if encoding.names() != saved.names() {
        let message = format!(
            "{} features of this version of blnn are not those of the run; use the version that \
             trained it",
            kind.name()
        );
        return Err(mismatch(message));
    }
    let source = FeatureSource::Edges { kind, why: super::Why::Trained, columns };
    Ok(Made { features, encoding, source, unseen: Vec::new() })
}

/// Refuses a matrix of another width than that of the run.
pub(super) fn check_width(saved: &Encoding, features: &Features) -> Result<()> {
    let (found, wanted) = (features.cols(), saved.features.len());
    if saved.origin() != Some(Origin::Matrix) {
        return Err(other_kind(saved, &Given::None));
    }
    if found == wanted {
        return Ok(());
    }
    Err(mismatch(format!(
        "has {} features, and the run was trained with {}; give a matrix with the same columns",
        grouped(found),
        grouped(wanted)
    )))
}

fn other_kind(saved: &Encoding, given: &Given) -> Error {
    let trained = saved.describe();
    let remedy = match (saved.origin(), given) {
        (Some(Origin::Columns), Given::None) => "name the table with --nodes",
        (Some(Origin::Columns), _) => "give edges with --edges and such a table with --nodes",
        _ => "give such a matrix with --nodes, or a file that holds one",
    };
    mismatch(format!("the run was trained with {trained}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::super::{Loaded, read, read_as};
    use super::*;

    const EDGES: &str = "source,target\na,b\nb,c\nc,d\nd,e\na,c\n";
    const NODES: &str = "id,age,land\na,1,de\nb,2,fr\nc,0,de\nd,4,fr\ne,9,de\n";

    struct Files(tempfile::TempDir);

    impl Files {
        fn new() -> Self {
            let files = Self(tempfile::tempdir().unwrap());
            files.put("edges.csv", EDGES);
            files.put("nodes.csv", NODES);
            files
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn put(&self, name: &str, text: impl AsRef<[u8]>) {
            std::fs::write(self.path(name), text).unwrap();
        }

        fn request(&self, nodes: Option<&str>, features: Option<Structural>) -> OwnGraph {
            let nodes = nodes.map(|name| self.path(name));
            OwnGraph { nodes, features, ..OwnGraph::new(self.path("edges.csv")) }
        }

        fn learned(&self, nodes: Option<&str>, features: Option<Structural>) -> Loaded {
            read(&self.request(nodes, features), &Threads::new(1)).unwrap()
        }

        /// Reads `nodes` for a model of `encoding`.
        fn again(&self, nodes: Option<&str>, encoding: &Encoding) -> Result<Loaded> {
            read_as(&self.request(nodes, None), encoding, &Threads::new(1))
        }
    }

    /// What features.json keeps of an encoding.
    fn stored(encoding: &Encoding) -> Encoding {
        serde_json::from_str(&serde_json::to_string_pretty(encoding).unwrap()).unwrap()
    }

    #[test]
    fn the_same_files_give_the_same_bits() {
        let files = Files::new();
        let kinds = Structural::ALL.map(Some).into_iter().chain([None]);
        for (kind, nodes) in kinds.map(|kind| (kind, kind.is_none().then_some("nodes.csv"))) {
            let first = files.learned(nodes, kind);
            let again = files.again(nodes, &stored(&first.encoding)).unwrap();
            assert_eq!(first.graph.features(), again.graph.features(), "{kind:?}");
            assert_eq!(first.graph.fingerprint(), again.graph.fingerprint());
            assert_eq!(first.encoding, again.encoding);
        }
    }

    /// Means and scales were once kept in single precision.
    #[test]
    fn the_scales_of_older_runs_are_read() {
        let files = Files::new();
        let kept = r#"{"features": [{"name": "age", "from": "number", "column": "age",
                       "mean": 3.2, "scale": 3.1874754}]}"#;
        let old = files.again(Some("nodes.csv"), &serde_json::from_str(kept).unwrap()).unwrap();
        let new = files.learned(Some("nodes.csv"), None);
        let ages = |loaded: &Loaded| match loaded.graph.features() {
            Features::Dense(x) => [0, 1, 2, 3, 4].map(|node| x.get(node, 0)),
            Features::Sparse(_) => panic!("dense"),
        };
        for (old, new) in ages(&old).into_iter().zip(ages(&new)) {
            assert!((old - new).abs() < 1e-6, "{old} {new}");
        }
    }

    #[test]
    fn degrees_of_a_new_graph_are_measured_with_the_old_scale() {
        let files = Files::new();
        let old = files.learned(None, Some(Structural::Degree));
        files.put("edges.csv", "source,target\na,b\nb,c\n");
        let new = files.again(None, &old.encoding).unwrap();
        let row = |loaded: &Loaded, row: usize| match loaded.graph.features() {
            Features::Dense(x) => x.row(row).to_vec(),
            Features::Sparse(_) => panic!("dense"),
        };
        // Both have degree 2, and neighbours of other degrees.
        assert_eq!(row(&old, 0)[0], row(&new, 1)[0]);
        assert_ne!(row(&old, 0)[1], row(&new, 1)[1]);
        assert!(new.understood.to_string().contains("degree (as at training)"));
    }

    #[test]
    fn a_table_of_no_use_to_a_model_of_structure_is_told() {
        let files = Files::new();
        let walk = files.learned(None, None).encoding;
        // An empty cell is no fault in a column that is not read.
        files.put("gaps.csv", NODES.replace("2,fr", ",fr"));
        let told = files.again(Some("gaps.csv"), &walk).unwrap().understood.to_string();
        assert!(told.contains("left out  age, land (the run was not trained with it)"), "{told}");
    }

    fn refusal(loaded: Result<Loaded>) -> String {
        loaded.unwrap_err().to_string()
    }

    #[test]
    fn features_of_another_kind_are_refused_with_a_remedy() {
        let files = Files::new();
        let columns = files.learned(Some("nodes.csv"), None).encoding;
        let text = refusal(files.again(None, &columns));
        for part in ["edges.csv", "columns `age`, `land` of a table", "--nodes"] {
            assert!(text.contains(part), "{text}");
        }
        let mut bytes = Vec::new();
        let matrix = blnn_kernels::Matrix::from_fn(5, 2, |i, j| (i + j) as f32);
        crate::data::npy::write_f32_matrix(&mut bytes, &matrix).unwrap();
        files.put("x.npy", bytes);
        files.put("edges.csv", "0,1\n1,2\n2,3\n3,4\n");
        let text = refusal(files.again(Some("x.npy"), &columns));
        assert!(text.contains("x.npy") && text.contains("such a table"), "{text}");
        let mut wide = files.learned(Some("x.npy"), None).encoding;
        wide.features.extend(wide.features.clone());
        let text = refusal(files.again(Some("x.npy"), &wide));
        assert!(text.contains("x.npy: has 2 features") && text.contains("with 4"), "{text}");
        let request = files.request(Some("nodes.csv"), Some(Structural::Degree));
        let text = refusal(read_as(&request, &columns, &Threads::new(1)));
        assert!(text.contains("--features degree") && text.contains("leave the flag"), "{text}");
        let none = Encoding { features: Vec::new() };
        assert!(refusal(files.again(None, &none)).contains("no features"));
    }

    #[test]
    fn columns_that_differ_are_explained_with_file_and_name() {
        let files = Files::new();
        let encoding = files.learned(Some("nodes.csv"), None).encoding;
        let try_table = |text: &str| {
            files.put("new.csv", text);
            refusal(files.again(Some("new.csv"), &encoding))
        };
        let text = try_table("id,Age\na,1\nb,2\nc,3\nd,4\ne,5\n");
        assert!(text.starts_with(&place(&files.path("new.csv"))), "{text}");
        assert!(text.contains("`age` (did you mean `Age`?), `land`; it has `Age`."), "{text}");
        let text = try_table(&NODES.replace("c,0,", "c,zero,"));
        assert!(text.contains("line 4: column `age`: `zero` is not a number"), "{text}");
        let text = try_table(&NODES.replace("a,1,", "a,one,"));
        assert!(text.contains("`age` holds texts such as `one`"), "{text}");
        let text = try_table(&NODES.replace("de", "1").replace("fr", "2"));
        assert!(text.contains("`land` holds numbers") && text.contains("`de`, `fr`"), "{text}");
        let text = try_table(&NODES.replace("c,0,de", "c,,de"));
        assert!(text.contains("line 4: the cell of `age` is empty"), "{text}");
    }

    fn place(path: &Path) -> String {
        format!("{}: lacks columns", path.display())
    }

    /// Texts that look like numbers were texts if one of them was at training.
    #[test]
    fn numbers_may_be_texts() {
        let files = Files::new();
        files.put("nodes.csv", NODES.replace("de", "1").replace("fr", "2b"));
        let encoding = files.learned(Some("nodes.csv"), None).encoding;
        assert_eq!(encoding.names(), ["age", "land=1", "land=2b"]);
        files.put("new.csv", NODES.replace("de", "1").replace("fr", "3"));
        let loaded = files.again(Some("new.csv"), &encoding).unwrap();
        assert_eq!((loaded.understood.unseen.len(), loaded.understood.unseen[0].nodes), (1, 2));
    }
}
