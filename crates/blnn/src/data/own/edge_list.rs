//! Edge lists in delimited text: two columns of ids, and others that are passed over.

use std::borrow::Cow;

use blnn_kernels::Threads;

use super::ColumnNames;
use super::columns::{find_ends, told};
use super::endpoints::EndPoints;
use super::ids::whole_number;
use super::record::{Separator, Split, split};
use super::text_edges::TextEdges;
use super::text_table::{Pieces, Record, TextTable, cut};
use super::weight_column::NoEnd;
use super::{header, weight_column};
use crate::error::{Error, ErrorKind, Result};

/// Where the two ends stand in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) ends: [usize; 2],
    pub(crate) width: usize,
    pub(crate) separator: Separator,
}

/// Finds the two columns, and takes the first record as the header if it is one.
pub(crate) fn layout(table: &mut TextTable<'_>, columns: &ColumnNames) -> Result<Layout> {
    if table.width() < 2 {
        let message = "has one column only, an edge list needs two; separate them by comma, tab, \
                       semicolon or space";
        return Err(Error::new(ErrorKind::Parse, message));
    }
    let reading = header::of_edges(table.sample(), columns);
    table.read_first(reading, "--source-column")?;
    let names = table.header().unwrap_or_default();
    let known = find_ends(names).unwrap_or_else(|| first_two(table));
    let column = |wanted: Option<&str>, flag: &str, otherwise: usize| {
        wanted.map_or(Ok(otherwise), |wanted| told(names, table.width(), wanted, flag))
    };
    let source = column(columns.source.as_deref(), "--source-column", known[0])?;
    let target = column(columns.target.as_deref(), "--target-column", known[1])?;
    if source == target {
        let name = table.column_name(source);
        let message = format!(
            "`{name}` cannot be both ends of an edge; tell the columns with --source-column and \
             --target-column"
        );
        return Err(Error::new(ErrorKind::Parse, message));
    }
    let is_guess = columns.target.is_none() && find_ends(names).is_none() && target == source + 1;
    if is_guess {
        check_guess(table, source, columns.source.is_some())?;
    }
    let (width, separator) = (table.width(), table.separator());
    Ok(Layout { ends: [source, target], width, separator })
}

/// Refuses the column `source` and the next one as the ends where one of them hardly is.
fn check_guess(table: &TextTable<'_>, source: usize, is_told: bool) -> Result<()> {
    if weight_column::is_between(table.sample(), source) {
        return Err(weight_between(table, source));
    }
    let name = table.header().and_then(|names| names.get(source)).map(String::as_str);
    match weight_column::before_ends(name, table.sample(), source) {
        Some(why) if !is_told => Err(no_end(table, source, why)),
        _ => Ok(()),
    }
}

fn no_end(table: &TextTable<'_>, source: usize, why: NoEnd) -> Error {
    let (name, why, first) = (table.column_name(source), why.reason(), source + 1);
    let (second, third) = (first + 1, first + 2);
    let message = format!(
        "`{name}` {why} and would be an end of every edge; tell the ends, as with --source-column \
         {second} --target-column {third}, or with --source-column {first} --target-column {second} \
         if it is one"
    );
    Error::new(ErrorKind::Parse, message)
}

fn weight_between(table: &TextTable<'_>, source: usize) -> Error {
    let (name, first) = (table.column_name(source + 1), source + 1);
    let (second, third) = (first + 1, first + 2);
    let message = format!(
        "`{name}` holds numbers and stands between two columns of ids, as a weight does; tell the \
         ends with --source-column {first} --target-column {third}, or with --source-column {first} \
         --target-column {second} if these numbers are ids"
    );
    Error::new(ErrorKind::Parse, message)
}

/// The first two columns that do more than number the lines.
fn first_two(table: &TextTable<'_>) -> [usize; 2] {
    let first = usize::from(table.width() > 2 && table.is_row_numbers(0));
    [first, first + 1]
}

/// Reads all edges that are left in the table.
pub(crate) fn read(
    table: &mut TextTable<'_>,
    layout: Layout,
    threads: &Threads,
) -> Result<EndPoints> {
    let mut ends = EndPoints::new();
    let piece = |bytes: &[u8]| numbers(bytes, layout);
    if table.map_pieces(threads, piece, |block| ends.push_numbers(block))? == Pieces::All {
        return Ok(ends);
    }
    read_texts(table, layout, ends, threads)
}

/// Reads on with ids that are texts, after edges between numbers.
fn read_texts(
    table: &mut TextTable<'_>,
    layout: Layout,
    before: EndPoints,
    threads: &Threads,
) -> Result<EndPoints> {
    let mut edges = TextEdges::new();
    if let EndPoints::Numbers(blocks) = before {
        for [source, target] in blocks.into_iter().flatten() {
            edges.push(&source.to_string(), &target.to_string());
        }
    }
    loop {
        let (window, unquoted) = table.window();
        let length = window.len();
        if unquoted && edges.add(&cut(window), layout, threads) {
            if !table.advance(length)? {
                break;
            }
            continue;
        }
        table.see_window(&mut |record| {
            edges.push(&id_of(record, layout, 0)?, &id_of(record, layout, 1)?);
            Ok(())
        })?;
        if !table.advance(0)? {
            break;
        }
    }
    let (ids, pairs) = edges.finish(threads);
    // Quotes or blank lines alone do not make texts of numbers.
    if ids.iter().all(|id| whole_number(id.as_bytes()).is_some()) {
        let number = |id: u32| whole_number(ids.get(id).as_bytes()).unwrap_or(0);
        let mut ends = EndPoints::new();
        ends.push_numbers(pairs.iter().map(|pair| pair.map(number)).collect());
        return Ok(ends);
    }
    Ok(EndPoints::Texts { ids, pairs })
}

fn id_of<'r>(record: &Record<'r>, layout: Layout, end: usize) -> Result<Cow<'r, str>> {
    let id = record.text(layout.ends[end])?;
    if id.is_empty() {
        let end = ["source", "target"][end];
        let message = format!("the {end} is empty; fill it in or remove the line");
        return Err(Error::new(ErrorKind::Parse, message));
    }
    Ok(id)
}

/// The edges in whole records without quotes, or none if anything in them needs a closer look.
fn numbers(bytes: &[u8], layout: Layout) -> Option<Vec<[i64; 2]>> {
    // Two short ids and their line: a guess that is rarely too small.
    let mut edges = Vec::with_capacity(bytes.len() / 12);
    if layout.ends == [0, 1] && layout.width == 2 {
        bare_pairs(bytes, layout.separator, &mut edges)?;
        return Some(edges);
    }
    let mut fields = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Split::Record(length) = split(rest, layout.separator, true, &mut fields) else {
            return None;
        };
        if fields.len() == layout.width {
            let [source, target] = layout.ends.map(|end| whole_number(fields[end].raw(rest)));
            edges.push([source?, target?]);
        } else if !fields.is_empty() {
            return None;
        }
        rest = &rest[length..];
    }
    Some(edges)
}

/// Lines of just two ids, the usual edge list, in one pass over the bytes.
fn bare_pairs(bytes: &[u8], separator: Separator, edges: &mut Vec<[i64; 2]>) -> Option<()> {
    let between = separator.byte();
    let mut at = 0;
    while at < bytes.len() {
        let (source, end) = digits(bytes, at)?;
        if bytes.get(end) != Some(&between) {
            return None;
        }
        let (target, mut end) = digits(bytes, end + 1)?;
        if bytes.get(end) == Some(&b'\r') {
            end += 1;
        }
        if !matches!(bytes.get(end), None | Some(b'\n')) {
            return None;
        }
        edges.push([source, target]);
        at = end + 1;
    }
    Some(())
}

/// The number without sign at `start`, as [`whole_number`] reads it, and where it ends.
fn digits(bytes: &[u8], start: usize) -> Option<(i64, usize)> {
    let mut value = 0_i64;
    let mut at = start;
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&d| d < 10) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    let leading_zero = bytes[start..at].first() == Some(&b'0') && at - start > 1;
    (at > start && at - start <= 18 && !leading_zero).then_some((value, at))
}

#[cfg(test)]
mod tests {
    use super::super::chunks::Chunks;
    use super::*;

    fn columns(source: Option<&str>, target: Option<&str>) -> ColumnNames {
        ColumnNames {
            source: source.map(Into::into),
            target: target.map(Into::into),
            ..ColumnNames::default()
        }
    }

    fn edges(text: &str, columns: &ColumnNames) -> Result<Vec<(String, String)>> {
        let mut table = TextTable::new(Chunks::new(text.as_bytes())?)?;
        let layout = layout(&mut table, columns)?;
        let threads = Threads::new(1);
        let (nodes, edges) = read(&mut table, layout, &threads)?.into_graph(&threads);
        let name = |row: u32| nodes.text(row as usize).into_owned();
        Ok(edges.into_iter().map(|(i, j)| (name(i), name(j))).collect())
    }

    fn pair(source: &str, target: &str) -> (String, String) {
        (source.into(), target.into())
    }

    #[test]
    fn headers_are_seen_where_they_are() {
        let none = ColumnNames::default();
        let wanted = [pair("1", "2"), pair("2", "3")];
        for text in [
            "1,2\n2,3\n",
            "source,target\n1,2\n2,3",
            "Paper A;Paper B\r\n1;2\r\n2;3\r\n",
            "weight\tto\tfrom\n0.5\t2\t1\n0.25\t3\t2\n",
            "# SNAP\n1 2\n2 3\n",
            "u,v,note\n1,2,\"a, b\"\n\n2,3,\n",
            "1,2,0.5\n2,3,0.5\n",
            ",who,whom\n0,1,2\n1,2,3\n",
            "timestamp,sender,receiver\n1700000000,1,2\n1700000060,2,3\n",
            "timestamp,sender_id,receiver_id\n5,1,2\n6,2,3\n",
            "type,head,tail\nlikes,1,2\nknows,2,3\n",
            "who,whom,rating\n1,2,5\n2,3,1\n",
            "who,whom,type,timestamp\n1,2,likes,5\n2,3,knows,6\n",
        ] {
            assert_eq!(edges(text, &none).unwrap(), wanted, "{text}");
        }
        let names = edges("ann,bob\nbob,cy\n", &none).unwrap();
        assert_eq!(names, [pair("ann", "bob"), pair("bob", "cy")]);
        let told = edges("who,whom\nann,bob\n", &columns(Some("who"), Some("whom"))).unwrap();
        assert_eq!(told, [pair("ann", "bob")]);
        let bare = ColumnNames { no_header: true, ..columns(Some("3"), Some("1")) };
        assert_eq!(edges("u,v,w\na,b,c\n", &bare).unwrap(), [pair("w", "u"), pair("c", "a")]);
    }

    #[test]
    fn numbers_between_ids_are_what_they_are_told_to_be() {
        let text = "a,0.5,b\nb,1,c\n";
        let weights = edges(text, &columns(Some("1"), Some("3"))).unwrap();
        assert_eq!(weights, [pair("a", "b"), pair("b", "c")]);
        let ids = edges(text, &columns(Some("1"), Some("2"))).unwrap();
        assert_eq!(ids, [pair("a", "0.5"), pair("b", "1")]);
    }

    #[test]
    fn dates_before_ids_are_what_they_are_told_to_be() {
        let text = "date,who,whom\n2020-01-31,ann,bob\n2020-02-01,bob,cy\n";
        let wanted = [pair("ann", "bob"), pair("bob", "cy")];
        assert_eq!(edges(text, &columns(Some("2"), Some("3"))).unwrap(), wanted);
        let days = [pair("2020-01-31", "ann"), pair("2020-02-01", "bob")];
        assert_eq!(edges(text, &columns(Some("1"), Some("2"))).unwrap(), days);
        assert_eq!(edges(text, &columns(Some("date"), None)).unwrap(), days);
    }

    #[test]
    fn edges_between_two_kinds_of_nodes_need_no_flags() {
        let users = edges("user,item,rating\nann,7,5\nbob,5,3\n", &ColumnNames::default());
        assert_eq!(users.unwrap(), [pair("ann", "7"), pair("bob", "5")]);
        let numbers = edges("user,item,rating\n101,3,5\n102,5,3\n", &ColumnNames::default());
        assert_eq!(numbers.unwrap(), [pair("101", "3"), pair("102", "5")]);
    }

    #[test]
    fn odd_ids_in_the_middle_change_nothing_before_them() {
        let text = "source,target\n1,2\n007,1\n\"x,1\",2\n-5,1\n";
        let wanted = [pair("1", "2"), pair("007", "1"), pair("x,1", "2"), pair("-5", "1")];
        assert_eq!(edges(text, &ColumnNames::default()).unwrap(), wanted);
    }

    #[test]
    fn faults_are_told() {
        let none = ColumnNames::default();
        for (text, columns, wanted) in [
            ("only\none\n", &none, "one column only"),
            ("a,b\n1,2\n3,\n", &none, "line 3: the target is empty"),
            ("a,b\n1,2\n3\n", &none, "line 3: has 1 field"),
            ("a,b\n1,2\n", &columns(Some("a"), Some("a")), "both ends"),
            ("a,0.5,b\nb,1,c\n", &none, "`column 2` holds numbers and stands between two"),
            ("who;rating;whom\nann;5;bob\nbob;3;cy\n", &none, "--target-column 3, or"),
            ("0.5,1,2\n0.25,2,3\n", &none, "`column 1` holds fractions and would be an end"),
            ("date,who,whom\n2020-01-31,a,b\n2020-02-01,b,c\n", &none, "`date` holds dates"),
            ("time,who,whom\n5,1,2\n6,2,3\n", &none, "`time` holds no ids by its name"),
            (",kind,who,whom\n0,x,a,b\n1,y,b,c\n", &none, "`kind` has no id in common with"),
            (",kind,who,whom\n0,x,a,b\n1,y,b,c\n", &none, "--source-column 3 --target-column 4,"),
            ("source,target\n1,2\n", &columns(Some("sorce"), None), "did you mean `source`?"),
        ] {
            let text = edges(text, columns).unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn the_fast_way_declines_what_it_cannot_read() {
        let layout = Layout { ends: [0, 1], width: 2, separator: Separator::Comma };
        assert_eq!(numbers(b"1,2\r\n3,4", layout), Some(vec![[1, 2], [3, 4]]));
        for odd in ["1,2,3\n", "1\n", "1,x\n", "01,2\n", "1, 2\n", "\n", "-1,2\n", "1,2 \n"] {
            assert_eq!(numbers(odd.as_bytes(), layout), None, "{odd:?}");
        }
        let long = format!("1,{}\n", "9".repeat(19));
        assert_eq!(numbers(long.as_bytes(), layout), None);
    }
}
