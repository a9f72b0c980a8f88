//! Node tables in delimited text.

use blnn_kernels::Threads;

use super::ColumnNames;
use super::header;
use super::known::{Found, Known};
use super::node_table::{Column, Filling, NodeTable, Roles, has_decimal_comma, is_missing, number};
use super::row_numbers::ROW_NUMBERS;
use super::text_table::{Record, TextTable, cut, records_in};
use crate::error::{Error, Result};

/// Reads the whole node table that `open` opens; with `known`, only the columns that a model was
/// trained with.
pub(crate) fn read<'a>(
    open: &dyn Fn() -> Result<TextTable<'a>>,
    columns: &ColumnNames,
    known: Option<&Known<'_>>,
    threads: &Threads,
) -> Result<(NodeTable, TextTable<'a>)> {
    let mut table = open()?;
    let (mut filling, layout) = start(&mut table, columns, known)?;
    let filled = fill(&mut table, &mut filling, &layout, threads)?;
    let read = filled.and_then(|()| filling.finish()).map_err(|(row, fault)| {
        let record = row + usize::from(table.header().is_some());
        let line = open().and_then(|again| again.line_of_record(record));
        line.map_or_else(|error| error, |line| fault.at(format_args!("line {line}")))
    })?;
    Ok((read, table))
}

/// Where ids, label and features stand in a record.
struct Layout {
    id: usize,
    label: Option<usize>,
    /// The place of each column of the table that is filled.
    places: Vec<usize>,
}

impl Layout {
    /// Adds a record to a table.
    fn take(&self, record: &Record<'_>, filling: &mut Filling) -> Result<()> {
        let row = filling.rows();
        filling.push_id(&record.text(self.id)?)?;
        if let Some(label) = self.label {
            filling.push_label(&record.text(label)?);
        }
        for (column, &place) in filling.columns.iter_mut().zip(&self.places) {
            column.push(row, &record.text(place)?)?;
        }
        Ok(())
    }
}

/// Reads all records that are left: pieces of a window at once, each into a table of its own, or
/// record by record where there are quotes, or a fault that is to be told with its line. A row
/// whose id came before is told by its number.
fn fill(
    table: &mut TextTable<'_>,
    filling: &mut Filling,
    layout: &Layout,
    threads: &Threads,
) -> Result<std::result::Result<(), (usize, Error)>> {
    loop {
        let (window, unquoted) = table.window();
        let length = window.len();
        let pieces = if unquoted { read_pieces(table, filling, layout, threads) } else { None };
        let done = if let Some(pieces) = pieces {
            if let Err(fault) = pieces.into_iter().try_for_each(|piece| filling.append(piece)) {
                return Ok(Err(fault));
            }
            length
        } else {
            table.see_window(&mut |record| layout.take(record, filling))?;
            0
        };
        if !table.advance(done)? {
            break;
        }
    }
    filling.check_labels().map(Ok)
}

/// The tables of the pieces of a window; none if anything in it needs a closer look.
fn read_pieces(
    table: &TextTable<'_>,
    filling: &Filling,
    layout: &Layout,
    threads: &Threads,
) -> Option<Vec<Filling>> {
    let shape = (table.separator(), table.width());
    let pieces = cut(table.window().0).into_iter();
    let mut pieces: Vec<(&[u8], Option<Filling>)> = pieces.map(|piece| (piece, None)).collect();
    threads.for_each_owned(&mut pieces, |_, (bytes, out)| {
        let mut piece = filling.empty();
        let read = records_in(bytes, shape, |record| layout.take(record, &mut piece).ok());
        *out = read.map(|()| piece);
    });
    pieces.into_iter().map(|(_, out)| out).collect()
}

/// An empty table for what the first records hold.
fn start(
    table: &mut TextTable<'_>,
    columns: &ColumnNames,
    known: Option<&Known<'_>>,
) -> Result<(Filling, Layout)> {
    let reading = header::of_nodes(table.sample(), columns, known);
    table.read_first(reading, "--id-column")?;
    let roles = Roles::find(table.header().unwrap_or_default(), table.width(), columns, 0)?;
    let label = roles.label.map(|column| table.column_name(column));
    let mut filling = Filling::new(table.column_name(roles.id), label);
    let places: Vec<usize> =
        (0..table.width()).filter(|&c| c != roles.id && Some(c) != roles.label).collect();
    if let Some(known) = known {
        let names: Vec<String> = (0..table.width()).map(|c| table.column_name(c)).collect();
        roles.check(known, &names)?;
    }
    let column = |&place: &usize| new_column(table, place, &roles, known);
    filling.columns = places.iter().map(column).collect::<Result<_>>()?;
    Ok((filling, Layout { id: roles.id, label: roles.label, places }))
}

/// An empty column for what the first records hold.
fn new_column(
    table: &TextTable<'_>,
    place: usize,
    roles: &Roles,
    known: Option<&Known<'_>>,
) -> Result<Column> {
    let name = table.column_name(place);
    if roles.skipped.contains(&place) {
        return Ok(Column::skipped(name, "as told"));
    }
    let needed = known.is_some_and(|known| known.needs(&name));
    if !needed && table.is_row_numbers(place) {
        return Ok(Column::skipped(name, ROW_NUMBERS));
    }
    let sample = Sample::of(table.sample().iter().filter_map(|row| row.get(place)));
    match (known, sample.text) {
        (Some(known), None) if known.has_number_among_texts(&name) => {
            known.column(name, Found::Texts(None))
        }
        // A text among numbers is told with its line when it is met.
        (Some(known), Some(_)) if sample.begins_with_number && known.wants_numbers(&name) => {
            known.column(name, Found::Numbers)
        }
        (Some(known), Some(_)) if sample.is_mostly_numbers() && known.wants_numbers(&name) => {
            known.column(name, Found::Numbers)
        }
        (Some(known), None) => known.column(name, Found::Numbers),
        (Some(known), Some(text)) => known.column(name, Found::Texts(Some(text))),
        (None, None) => Ok(Column::numbers(name)),
        (None, Some(_)) if sample.is_mostly_numbers() => Ok(Column::numbers(name)),
        (None, Some(_)) => Ok(Column::kinds(name)),
    }
}

/// What the first cells of a column hold. A column whose first cells are all empty has to fail,
/// as numbers or as texts.
#[derive(Default)]
struct Sample<'s> {
    begins_with_number: bool,
    /// Numbers, those written with a comma among them.
    numbers: usize,
    texts: usize,
    /// The first cell that cannot be read as a number.
    text: Option<&'s str>,
}

impl<'s> Sample<'s> {
    fn of(cells: impl Iterator<Item = &'s String>) -> Self {
        let mut sample = Self::default();
        for (row, cell) in cells.enumerate() {
            let is_number = number(cell).is_some();
            sample.begins_with_number |= row == 0 && is_number;
            if is_missing(cell) {
                continue;
            }
            if is_number || has_decimal_comma(cell) {
                sample.numbers += 1;
            } else {
                sample.texts += 1;
            }
            if !is_number {
                sample.text = sample.text.or(Some(cell));
            }
        }
        sample
    }

    /// Whether the texts are slips: categories would come more often than in one cell of ten.
    fn is_mostly_numbers(&self) -> bool {
        self.numbers > 0 && self.texts * 10 <= self.numbers + self.texts
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::super::chunks::Chunks;
    use super::super::node_table::Cells;
    use super::*;

    fn table(text: &str, columns: &ColumnNames) -> Result<NodeTable> {
        let open = || TextTable::new(Chunks::new(text.as_bytes())?);
        read(&open, columns, None, &Threads::new(2)).map(|(table, _)| table)
    }

    fn labelled(label: &str) -> ColumnNames {
        ColumnNames { label: Some(label.into()), ..ColumnNames::default() }
    }

    #[test]
    fn columns_get_their_types() {
        let text = "id,age,country,topic\nx,40,de,ai\ny,0,fr,db\nz,31.5,de,ai\n";
        let found = table(text, &labelled("topic")).unwrap();
        assert_eq!(found.ids.row_of_text("z"), Some(2));
        let label = found.label.unwrap();
        assert_eq!(label.classes, [Some(0), Some(1), Some(0)]);
        assert_eq!(label.names, ["ai", "db"]);
        let [age, country] = &found.columns[..] else { panic!("two columns") };
        assert!(matches!(&age.cells, Cells::Numbers(numbers)
            if numbers.iter().eq([(0, 40.0), (2, 31.5)])));
        assert!(matches!(&country.cells, Cells::Kinds { codes, .. } if codes == &[0, 1, 0]));
    }

    #[test]
    fn some_nodes_may_have_no_label() {
        let found = table("id,x,y\n1,2,ai\n2,3,\n3,4,NA\n", &labelled("y")).unwrap();
        assert_eq!(found.label.unwrap().classes, [Some(0), None, None]);
    }

    #[test]
    fn headers_are_optional() {
        let found = table("7,0.5\n9,1.5\n", &ColumnNames::default()).unwrap();
        assert_eq!((found.ids.len(), found.columns[0].name.as_str()), (2, "column 2"));
        let found = table("paper,year\n7,1999\n9,2001\n", &ColumnNames::default()).unwrap();
        assert_eq!((found.ids.len(), found.columns[0].name.as_str()), (2, "year"));
        let found = table("a\nb\n", &ColumnNames::default()).unwrap();
        assert_eq!((found.ids.len(), found.columns.len()), (2, 0));
    }

    #[test]
    fn faults_name_line_column_and_remedy() {
        let none = ColumnNames::default();
        for (text, columns, wanted) in [
            ("id,x\n1,2\n\n1,3\n", &none, "line 4: the id `1` stands in `id` before"),
            ("id,x\na,2\na,3\n", &none, "line 3: the id `a` stands in `id` before"),
            ("id,x\n1,2\n,3\n", &none, "line 3: `id` is empty"),
            ("id,x\n1,2\n2,\n", &none, "line 3: the cell of `x` is empty; fill it in"),
            (
                "id,x\n1,2\n2,NA\n",
                &none,
                "line 3: the cell of `x` holds `NA`, which is no value; fill it",
            ),
            ("id,x\n1,red\n2,\n", &none, "line 3: the cell of `x` is empty"),
            ("id,x\n1,2\n2,inf\n", &none, "line 3: column `x`: `inf` is not finite"),
            ("id,x\n1,2\n2,1e400\n", &none, "line 3: column `x`: `1e400` is too large"),
            ("id,y,z\n1,,1\n2,,3\n", &labelled("y"), "the label `y` is empty in every row"),
            ("id,topic\n1,ai\n", &labelled("topik"), "did you mean `topic`?"),
            ("id,x\n1,2\n2\n", &none, "line 3: has 1 field"),
        ] {
            let text = table(text, columns).unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        }
    }

    /// A table of many pieces, and the same with a quote at its end, which is read record by
    /// record.
    #[test]
    fn pieces_make_the_same_table() {
        let mut text = String::from("id,x,land,title,y\n");
        for i in 0..20_000 {
            let land = ["de", "fr", "it"][i / 7000];
            let topic = if i % 5 == 0 { "" } else { ["b", "a", "c"][i % 3] };
            writeln!(text, "k{i},{},{land},t{},{topic}", i % 4, i % 100).unwrap();
        }
        let quoted = text.replace("k19999,", "\"k19999\",");
        let shown = |text: &str, threads: usize| {
            let open = || TextTable::new(Chunks::new(text.as_bytes())?);
            let read = read(&open, &labelled("y"), None, &Threads::new(threads)).unwrap().0;
            let ids: Vec<String> =
                (0..read.ids.len()).map(|row| read.ids.text(row).into_owned()).collect();
            let label = read.label.unwrap();
            let columns: Vec<String> = read.columns.iter().map(plainly).collect();
            (ids, label.classes, label.names, columns)
        };
        let wanted = shown(&quoted, 1);
        assert_eq!(wanted.0.len(), 20_000);
        assert!(wanted.3[2].contains("ManyTexts"), "{}", wanted.3[2]);
        for threads in [1, 2, 5] {
            assert!(shown(&text, threads) == wanted, "{threads} threads");
        }
    }

    /// A column without what differs from run to run: the seed of its hashes.
    fn plainly(column: &Column) -> String {
        match &column.cells {
            Cells::Kinds { codes, texts } => {
                format!("{codes:?} {:?}", texts.iter().collect::<Vec<_>>())
            }
            cells => format!("{cells:?}"),
        }
    }

    #[test]
    fn faults_in_later_pieces_have_their_lines() {
        let rows = |change: &dyn Fn(usize) -> Option<&'static str>| {
            let row = |i: usize| change(i).map_or(format!("k{i},{i}\n"), str::to_owned);
            String::from("id,x\n") + &(0..30_000).map(row).collect::<String>()
        };
        for (line, fault, wanted) in [
            (25_000, "k7,1\n", "line 25002: the id `k7` stands in `id` before"),
            (25_000, "k25000,\n", "line 25002: the cell of `x` is empty"),
            (25_000, "k25000\n", "line 25002: has 1 field"),
            (29_999, ",3\n", "line 30001: `id` is empty"),
        ] {
            let text = rows(&|i| (i == line).then_some(fault));
            let text = table(&text, &ColumnNames::default()).unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        }
        // Whole numbers are compared at the end.
        let mut text = String::new();
        (0..30_000).for_each(|i| writeln!(text, "{},1.5", i % 29_998).unwrap());
        let text = table(&text, &ColumnNames::default()).unwrap_err().to_string();
        assert!(text.contains("line 29999: the id `0` stands"), "{text}");
    }

    #[test]
    fn a_late_text_among_numbers_is_refused() {
        let mut text = String::from("id,x\n");
        text.extend((0..2000).map(|i| format!("{i},{i}\n")));
        text += "2000,12o\n";
        let text = table(&text, &ColumnNames::default()).unwrap_err().to_string();
        assert!(text.contains("line 2002: column `x`: `12o` is not a number"), "{text}");
    }

    #[test]
    fn row_numbers_are_no_features_and_ids_only_for_want_of_others() {
        let none = ColumnNames::default();
        let found = table(",id,x\n0,a,5\n1,b,6\n2,c,5\n", &none).unwrap();
        assert_eq!((found.id_name.as_str(), found.ids.row_of_text("c")), ("id", Some(2)));
        assert!(matches!(found.columns[0].cells, Cells::Skipped(ROW_NUMBERS)));
        assert!(matches!(found.columns[1].cells, Cells::Numbers(_)));
        let found = table(",x,y\n0,5,1\n1,6,1\n2,5,0\n", &none).unwrap();
        assert_eq!((found.id_name.as_str(), found.columns.len()), ("column 1", 2));
        let found = table("id,,x\na,1,5\nb,1,6\n", &none).unwrap();
        assert!(matches!(found.columns[0].cells, Cells::Numbers(_)), "these repeat");
    }

    /// One slip in a column of numbers does not make categories of them, wherever it stands.
    #[test]
    fn a_text_among_nearly_all_numbers_is_refused() {
        for slip in [0, 7, 199] {
            let mut text = String::from("id,x\n");
            for i in 0..200 {
                let cell = if i == slip { "unknown".into() } else { format!("{}.5", i % 3) };
                writeln!(text, "k{i},{cell}").unwrap();
            }
            let told = table(&text, &ColumnNames::default()).unwrap_err().to_string();
            let wanted =
                format!("line {}: column `x`: `unknown` is not a number, as nearly", slip + 2);
            assert!(told.contains(&wanted) && told.contains("--skip-column"), "{told}");
        }
        let mixed = table("id,x\na,1\nb,2\nc,red\nd,red\n", &ColumnNames::default()).unwrap();
        assert!(matches!(mixed.columns[0].cells, Cells::Kinds { .. }), "categories stay");
    }

    #[test]
    fn decimal_commas_are_refused_as_such() {
        for (text, line) in [
            ("id;x\na;1,5\nb;2,25\nc;3\n", 2),
            ("id\tx\na\t1.234,5\nb\t2\n", 2),
            ("id,x\na,7\nb,\"1,234\"\n", 3),
        ] {
            let told = table(text, &ColumnNames::default()).unwrap_err().to_string();
            assert!(told.contains(&format!("line {line}: column `x`: `")), "{told}");
            assert!(told.contains("is written with a comma"), "{told}");
        }
        let lists = table("id;x\na;1,2,3\nb;4,5,6\n", &ColumnNames::default()).unwrap();
        assert!(matches!(lists.columns[0].cells, Cells::Kinds { .. }), "lists are texts");
    }
}
