//! Flags about a kind of file that was not given. Nothing could come of them, so each is refused
//! rather than passed over.

use std::path::Path;

use super::source::Kind;
use super::{OwnGraph, is_label_file};
use crate::error::{Error, ErrorKind, Result};

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Config, message)
}

/// The flags about a table of nodes that were given, each with its value.
fn about_nodes(request: &OwnGraph) -> impl Iterator<Item = (&'static str, &str)> {
    let columns = &request.columns;
    let label = columns.label.as_deref().filter(|label| !is_label_file(label));
    let flags = [
        ("--label", label),
        ("--id-column", columns.id.as_deref()),
        ("--skip-column", columns.skip.first().map(String::as_str)),
    ];
    flags.into_iter().filter_map(|(flag, value)| Some((flag, value?)))
}

/// Refuses flags about columns of edges that are no table.
pub(super) fn check_edges(request: &OwnGraph, kind: Kind) -> Result<()> {
    let columns = &request.columns;
    let flags = [("--source-column", &columns.source), ("--target-column", &columns.target)];
    let given = flags.iter().find_map(|(flag, value)| Some((flag, value.as_ref()?)));
    match given {
        Some((flag, value)) if is_array(kind) => Err(refused(format!(
            "{flag} {value} is about a table of edges, and this is none; leave the flag out"
        ))
        .at(request.edges.display())),
        _ => Ok(()),
    }
}

/// Refuses flags about columns of nodes that are no table.
pub(super) fn check_nodes(request: &OwnGraph, nodes: &Path, kind: Kind) -> Result<()> {
    let Some((flag, value)) = about_nodes(request).next().filter(|_| is_array(kind)) else {
        return Ok(());
    };
    let remedy = match flag {
        "--label" => "give the classes as a vector, --label FILE.npy",
        _ => "leave the flag out",
    };
    let message =
        format!("{flag} {value} is about a table of nodes, and this is a matrix; {remedy}");
    Err(refused(message).at(nodes.display()))
}

/// Refuses a flag about first lines where no file has lines.
pub(super) fn check_header(request: &OwnGraph, kinds: &[Kind]) -> Result<()> {
    if !request.columns.no_header || kinds.contains(&Kind::Text) {
        return Ok(());
    }
    let message = "--no-header is about a table of text, and there is none; leave the flag out";
    Err(refused(message.into()).at(request.edges.display()))
}

fn is_array(kind: Kind) -> bool {
    matches!(kind, Kind::Npy | Kind::Npz)
}

/// Refuses flags about a table of nodes that was not given.
pub(super) fn check_no_table(request: &OwnGraph) -> Result<()> {
    let Some((flag, value)) = about_nodes(request).next() else {
        return Ok(());
    };
    let message = format!("{flag} {value} is about a table of nodes; name its file with --nodes");
    Err(refused(message))
}

/// Refuses files and flags beside an archive that holds everything; labels may come beside one that
/// has no member `labels` of them.
pub(super) fn check_alone(request: &OwnGraph, labels: &str, has_labels: bool) -> Result<()> {
    let columns = &request.columns;
    let label = columns.label.as_deref();
    let extra = [
        ("--nodes", request.nodes.is_some()),
        ("--label", label.is_some() && has_labels),
        ("--id-column", columns.id.is_some()),
        ("--skip-column", !columns.skip.is_empty()),
        ("--no-header", columns.no_header),
    ];
    let message = match extra.iter().find(|(_, given)| *given) {
        Some((flag, _)) if has_labels => {
            format!("holds the nodes and their labels too; leave {flag} out")
        }
        Some((flag, _)) => format!("holds the nodes too; leave {flag} out"),
        None if label.is_some_and(|label| !is_label_file(label)) => format!(
            "holds no labels: call them `{labels}` in the archive, or save them as a vector and \
             give that, --label FILE.npy"
        ),
        None => return Ok(()),
    };
    Err(refused(message).at(request.edges.display()))
}

/// Refuses to replace the features of a file that is read as a whole.
pub(super) fn check_features(request: &OwnGraph) -> Result<()> {
    let Some(kind) = request.features else {
        return Ok(());
    };
    let message = format!("holds features of its own; leave --features {} out", kind.name());
    Err(refused(message).at(request.edges.display()))
}
