//! Files of kinds that are well known and not read, with what to do about each.

use crate::error::{Error, ErrorKind, Result};

/// How such files begin, what they are, and the remedy.
const FOREIGN: [(&[u8], &str, &str); 10] = [
    (b"\xfd7zXZ\0", "is packed with xz", "unpack it with `unxz`, or pack it with gzip"),
    (b"\x28\xb5\x2f\xfd", "is packed with zstd", "unpack it with `unzstd`, or pack it with gzip"),
    (b"\x04\x22\x4d\x18", "is packed with lz4", "unpack it with `unlz4`, or pack it with gzip"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive", "unpack it and name the file in it"),
    (b"\x89HDF\r\n", "is an HDF5 file", "save its tables as csv or parquet"),
    (b"ARROW1\0\0", "is an Arrow (feather) file", "save it as parquet or csv"),
    (b"SQLite format 3\0", "is an SQLite database", "export its tables as csv"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1", "is an Excel workbook", "save its sheets as csv"),
    (b"\x80\x04\x95", "is a Python pickle", "save tables with to_csv, arrays with numpy.save"),
    (b"\x80\x05\x95", "is a Python pickle", "save tables with to_csv, arrays with numpy.save"),
];

/// Whether a text, in small letters, begins a file of some kind.
type Recognised = fn(&str) -> bool;

/// How graphs in text are recognised, what they are, and the remedy.
const GRAPHS: [(Recognised, &str, &str); 7] = [
    (
        |text| text.starts_with("%%matrixmarket"),
        "is a MatrixMarket file",
        "save it with scipy.sparse.save_npz(\"matrix.npz\", scipy.io.mmread(file).tocsr())",
    ),
    (
        |text| text.starts_with('<') && text.contains("<graphml"),
        "is a GraphML file",
        "save its edges with networkx.to_pandas_edgelist(networkx.read_graphml(file)) and to_csv",
    ),
    (
        |text| text.starts_with('<') && text.contains("<gexf"),
        "is a GEXF file",
        "save its edges with networkx.to_pandas_edgelist(networkx.read_gexf(file)) and to_csv",
    ),
    (
        |text| text.starts_with("<?xml"),
        "is an XML file",
        "save its edges as csv, a line of two ids for each",
    ),
    (
        is_gml,
        "is a GML file",
        "save its edges with networkx.to_pandas_edgelist(networkx.read_gml(file)) and to_csv",
    ),
    (
        |text| text.starts_with("*vertices") || text.starts_with("*network"),
        "is a Pajek file",
        "save its edges with networkx.to_pandas_edgelist(networkx.read_pajek(file)) and to_csv",
    ),
    (
        is_json,
        "is a JSON file",
        "save its records as csv, as with pandas.read_json(file, lines=True) for one a line, and \
         to_csv",
    ),
];

/// Whether keys and values begin here, one of which is a graph; comments may come first.
fn is_gml(text: &str) -> bool {
    const KEYS: [&str; 4] = ["graph", "creator", "version", "comment"];
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.first().is_some_and(|first| KEYS.contains(first))
        && words.windows(2).any(|pair| pair == ["graph", "["])
}

/// Whether an object begins here, or a list of objects or of lists; `[[Athens]]` is none.
fn is_json(text: &str) -> bool {
    let signs: Vec<char> = text.chars().filter(|sign| !sign.is_whitespace()).take(3).collect();
    match signs[..] {
        ['{', second, ..] => matches!(second, '"' | '}'),
        ['[', '{', ..] => true,
        ['[', '[', third] => matches!(third, '"' | '[' | '{' | ']' | '-' | '0'..='9'),
        _ => false,
    }
}

/// What a file is that is known and not read, and what to do about it.
fn find(start: &[u8]) -> Option<(&'static str, &'static str)> {
    let found = FOREIGN.iter().find(|(mark, ..)| start.starts_with(mark));
    if let Some(&(_, what, remedy)) = found {
        return Some((what, remedy));
    }
    if matches!(start, [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, ..]) {
        return Some(("is packed with bzip2", "unpack it with `bunzip2`, or pack it with gzip"));
    }
    if start.get(257..262) == Some(b"ustar") {
        return Some(("is a tar archive", "unpack it with `tar -xf` and name the file in it"));
    }
    // The start may end within a character.
    let text = String::from_utf8_lossy(start).to_lowercase();
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let found = GRAPHS.iter().find(|(is_such, ..)| is_such(text));
    found.map(|&(_, what, remedy)| (what, remedy))
}

/// Refuses bytes that begin a file which is known and not read.
pub(super) fn refuse(start: &[u8]) -> Result<()> {
    let Some((what, remedy)) = find(start) else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Parse, format!("{what}, which is not read; {remedy}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_and_not_read_has_a_remedy() {
        let mut tar = vec![b'x'; 257];
        tar.extend(b"ustar\0");
        for (start, wanted) in [
            (&b"BZh91AY&SY\x01"[..], "bzip2, which is not read; unpack it with `bunzip2`"),
            (b"\xfd7zXZ\0\0\x04", "`unxz`"),
            (b"\x28\xb5\x2f\xfd$", "`unzstd`"),
            (b"\x80\x04\x95\0", "Python pickle"),
            (&tar, "tar archive"),
            (b"%%MatrixMarket matrix coordinate real general\n3 5 2\n", "scipy.io.mmread"),
            (b"<?xml version='1.0'?>\n<graphml xmlns=\"g\">", "GraphML file, which is not read"),
            (b"<gexf version=\"1.3\">", "networkx.read_gexf"),
            (b"\xef\xbb\xbf<?xml version='1.0'?>\n<rss>", "XML file"),
            (b"graph [\n  node [\n    id 0\n", "networkx.read_gml"),
            (b"graph\n[\n  directed 0\n", "networkx.read_gml"),
            (b"# by hand\nCreator \"igraph\"\nVersion 1\ngraph\n[\n", "networkx.read_gml"),
            (b"*Vertices 3\r\n1 \"a\"\n", "networkx.read_pajek"),
            (b"{\"source\": \"a\", \"target\": \"b\"}\n", "pandas.read_json"),
            (b"[\n  {\"source\": 1}", "JSON file"),
        ] {
            let text = refuse(start).unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn texts_that_look_alike_are_let_through() {
        for start in [
            &b"BZh9,x\n"[..],
            b"ARROW1,2\n",
            b"7z,8\n",
            b"",
            b"% a comment\n1 2\n",
            b"graph,vertex\na,b\n",
            b"graph vertex\ng1 v1\n",
            b"creator work\nann graph\ngraph graphs\n",
            b"*a b\n",
            b"{a},{b}\n",
            b"[1] [2]\n",
            b"[[Athens]] [[Greece]]\n",
            b"<a> <b>\n",
        ] {
            refuse(start).unwrap();
        }
    }
}
