//! `blnn similar`: the nodes nearest to some nodes.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blnn::search::{Neighbour, Search};
use blnn::{Matrix, StoredRun, vectors};
use clap::Args;
use serde_json::json;

use crate::args::Format;
use crate::output::{note, shell_word};

/// Ids suggested for one that is unknown.
const SUGGESTIONS: usize = 3;

/// List the nodes most similar to given nodes.
///
/// Similarity is the cosine of two embeddings: 1 for the same direction, 0 for none in common.
/// The search is exact.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blnn similar runs/cora-blnn-seed1 35
  blnn similar runs/mine alice bob -k 5 --format json
  blnn similar runs/mine/embed-new zoe        among nodes embedded later
  blnn similar vectors.parquet alice          in embeddings of any program")]
pub(crate) struct SimilarArgs {
    /// The run's folder, a folder of `blnn embed`, or a file of embeddings
    #[arg(value_name = "RUN|FILE")]
    pub(crate) run: PathBuf,

    /// Ids of nodes, as in the run's `node_ids.txt`; numbers of rows where there are no ids
    #[arg(required = true, value_name = "NODE", allow_hyphen_values = false)]
    pub(crate) nodes: Vec<String>,

    /// How many similar nodes to list for each
    #[arg(short, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) k: u32,

    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

pub(crate) fn run(args: &SimilarArgs) -> anyhow::Result<ExitCode> {
    let Named { embeddings, ids, place } = read(&args.run)?;
    let rows = rows_of(&args.nodes, &ids)
        .map_err(|unknown| anyhow::anyhow!("{unknown} All ids are in {}", shell_word(&place)))?;
    let search = Search::new(&embeddings).map_err(|error| error.at(args.run.display()))?;
    for &row in &rows {
        tell_doubts(row, &embeddings, &ids, &place);
    }
    let mut out = io::stdout().lock();
    for (at, &row) in rows.iter().enumerate() {
        let near = search.of(row, args.k as usize);
        match args.format {
            Format::Json => writeln!(out, "{}", object(&ids, row, &near))?,
            Format::Table => {
                if at > 0 {
                    writeln!(out)?;
                }
                write!(out, "{}", table(&ids, row, &near))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says why an answer for a row may not be what was asked for.
fn tell_doubts(row: usize, embeddings: &Matrix, ids: &[String], place: &Path) {
    let id = &ids[row];
    if embeddings.row(row).iter().all(|&value| value == 0.0) {
        note(format_args!("warning: `{id}` is all zeros: nothing is similar to it"));
    }
    let again = ids.iter().filter(|other| *other == id).count() - 1;
    if again > 0 {
        let place = place.display();
        note(format_args!("warning: {place} has `{id}` {again} more times; the first is taken"));
    }
}

/// Embeddings, the id of each row, and the file that has the ids.
struct Named {
    embeddings: Matrix,
    ids: Vec<String>,
    place: PathBuf,
}

fn read(path: &Path) -> blnn::Result<Named> {
    let array = path.join("embeddings.npy");
    if path.is_file() {
        read_file(path)
    } else if array.exists() && !path.join("summary.json").exists() {
        read_file(&array)
    } else {
        let (embeddings, ids) = StoredRun::read(path)?.finished_embeddings()?;
        Ok(Named { embeddings, ids, place: path.join("node_ids.txt") })
    }
}

/// Embeddings of any program. Rows without ids are called by their numbers, from 0.
fn read_file(path: &Path) -> blnn::Result<Named> {
    let found = vectors::read_file(path, None)?;
    if let Some(told) = found.omissions() {
        note(format_args!("{}: {told}", path.display()));
    }
    let embeddings = found.matrix;
    let numbers = || (0..embeddings.rows()).map(|row| row.to_string()).collect();
    let (place, ids) = match found.ids {
        Some(ids) => (path.to_owned(), ids),
        None => vectors::ids_beside(path, embeddings.rows())?
            .unwrap_or_else(|| (path.to_owned(), numbers())),
    };
    Ok(Named { embeddings, ids, place })
}

fn object(ids: &[String], row: usize, near: &[Neighbour]) -> serde_json::Value {
    let entry = |n: &Neighbour| json!({ "id": ids[n.node as usize], "similarity": n.cosine });
    json!({ "id": ids[row], "similar": near.iter().map(entry).collect::<Vec<_>>() })
}

fn table(ids: &[String], row: usize, near: &[Neighbour]) -> String {
    use std::fmt::Write;
    let id = |n: &Neighbour| ids[n.node as usize].as_str();
    let lengths = near.iter().map(|n| id(n).chars().count());
    let width = lengths.chain([8]).max().unwrap_or_default();
    let mut text = format!("similar to {}\n", ids[row]);
    for (rank, n) in near.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>4}  {:<width$}  {:.4}", rank + 1, id(n), n.cosine);
    }
    text
}

/// The row of each id, or what to say about the first one that is unknown.
fn rows_of(wanted: &[String], ids: &[String]) -> Result<Vec<usize>, String> {
    let mut rows: HashMap<&str, usize> = HashMap::with_capacity(ids.len());
    for (row, id) in ids.iter().enumerate() {
        rows.entry(id).or_insert(row);
    }
    let row = |id: &String| rows.get(id.as_str()).copied().ok_or_else(|| unknown(id, ids));
    wanted.iter().map(row).collect()
}

fn unknown(wanted: &str, ids: &[String]) -> String {
    let close = closest(wanted, ids);
    if close.is_empty() {
        return format!("there is no node `{wanted}`.");
    }
    let quoted: Vec<String> = close.iter().map(|id| format!("`{id}`")).collect();
    format!("there is no node `{wanted}`; did you mean {}?", quoted.join(" or "))
}

/// The ids with the fewest edits from what was typed, unless they are too far to be a slip.
fn closest<'a>(wanted: &str, ids: &'a [String]) -> Vec<&'a str> {
    let mut near: Vec<(usize, &str)> =
        ids.iter().filter_map(|id| Some((blnn::slip(wanted, id)?, id.as_str()))).collect();
    near.sort_by_key(|&(edits, _)| edits);
    near.into_iter().take(SUGGESTIONS).map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> Vec<String> {
        ["alice", "bob", "carol", "alicia", "b\u{e9}a"].map(str::to_owned).to_vec()
    }

    #[test]
    fn ids_are_found_and_slips_are_answered() {
        let wanted = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
            rows_of(&names, &ids())
        };
        assert_eq!(wanted(&["carol", "alice"]), Ok(vec![2, 0]));
        let message = wanted(&["bob", "alixe"]).unwrap_err();
        assert_eq!(message, "there is no node `alixe`; did you mean `alice`?");
        assert_eq!(
            wanted(&["nobody-like-this"]).unwrap_err(),
            "there is no node `nobody-like-this`."
        );
    }

    #[test]
    fn a_table_lines_up() {
        let near = [Neighbour { node: 3, cosine: 0.98 }, Neighbour { node: 1, cosine: -0.5 }];
        let text = table(&ids(), 0, &near);
        assert_eq!(text, "similar to alice\n   1  alicia    0.9800\n   2  bob       -0.5000\n");
    }
}
