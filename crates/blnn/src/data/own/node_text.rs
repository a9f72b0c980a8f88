//! Node tables in delimited text.

use super::ColumnNames;
use super::columns::{find_id, told};
use super::known::{Found, Known};
use super::node_table::{Column, Filling, NodeTable, Roles, is_missing, number};
use super::text_table::TextTable;
use crate::error::Result;

/// Reads the whole node table that `open` opens; with `known`, only the columns that a model was
/// trained with.
pub(crate) fn read<'a>(
    open: &dyn Fn() -> Result<TextTable<'a>>,
    columns: &ColumnNames,
    known: Option<&Known<'_>>,
) -> Result<(NodeTable, TextTable<'a>)> {
    let mut table = open()?;
    let filling = fill(&mut table, columns, known)?;
    let read = filling.finish().map_err(|(row, fault)| {
        let record = row + usize::from(table.header().is_some());
        let line = open().and_then(|again| again.line_of_record(record));
        line.map_or_else(|error| error, |line| fault.at(format_args!("line {line}")))
    })?;
    Ok((read, table))
}

fn fill(
    table: &mut TextTable<'_>,
    columns: &ColumnNames,
    known: Option<&Known<'_>>,
) -> Result<Filling> {
    if !columns.no_header && has_header(table, columns, known) {
        table.take_header()?;
    }
    let roles = Roles::find(table.header().unwrap_or_default(), table.width(), columns)?;
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
    table.for_each(|record| {
        let row = filling.rows();
        filling.push_id(&record.text(roles.id)?)?;
        if let Some(label) = roles.label {
            filling.push_label(&record.text(label)?);
        }
        for (column, &place) in filling.columns.iter_mut().zip(&places) {
            column.push(row, &record.text(place)?)?;
        }
        Ok(())
    })?;
    filling.check_labels()?;
    Ok(filling)
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
    let mut cells = table.sample().iter().filter_map(|row| row.get(place));
    // A column whose first cells are all empty has to fail, as numbers or as texts.
    let text = cells.find(|cell| number(cell).is_none() && !is_missing(cell));
    match (known, text) {
        (Some(known), None) if known.has_number_among_texts(&name) => {
            known.column(name, Found::Texts(None))
        }
        (Some(known), None) => known.column(name, Found::Numbers),
        (Some(known), Some(text)) => known.column(name, Found::Texts(Some(text))),
        (None, None) => Ok(Column::numbers(name)),
        (None, Some(_)) => Ok(Column::kinds(name)),
    }
}

/// The first record is the header if it names a column that is told or known, or if it has no
/// number where the records below it do.
fn has_header(table: &TextTable<'_>, columns: &ColumnNames, known: Option<&Known<'_>>) -> bool {
    let Some((first, rest)) = table.sample().split_first() else {
        return false;
    };
    let named = [&columns.id, &columns.label].into_iter().flatten().chain(&columns.skip);
    let mut named = named.filter(|name| name.parse::<usize>().is_err());
    let is_known = |cell: &String| known.is_some_and(|known| known.needs(cell));
    if find_id(first).is_some()
        || first.iter().any(is_known)
        || named.any(|name| told(first, 0, name, "").is_ok())
    {
        return true;
    }
    let no_number = first.iter().all(|cell| number(cell).is_none());
    let is_number = |place: usize| {
        !rest.is_empty()
            && rest.iter().all(|row| row.get(place).is_some_and(|c| number(c).is_some()))
    };
    no_number && (0..first.len()).any(is_number)
}

#[cfg(test)]
mod tests {
    use super::super::chunks::Chunks;
    use super::super::node_table::Cells;
    use super::*;

    fn table(text: &str, columns: &ColumnNames) -> Result<NodeTable> {
        let open = || TextTable::new(Chunks::new(text.as_bytes())?);
        read(&open, columns, None).map(|(table, _)| table)
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
        assert!(matches!(&age.cells, Cells::Numbers { rows, values }
            if rows == &[0, 2] && values == &[40.0, 31.5]));
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
            ("id,x\n1,2\n2,\n", &none, "line 3: column `x` is empty; fill it in"),
            ("id,x\n1,2\n2,NA\n", &none, "--skip-column"),
            ("id,x\n1,red\n2,\n", &none, "line 3: column `x` is empty"),
            ("id,x\n1,2\n2,inf\n", &none, "line 3: column `x`: inf is not finite"),
            ("id,y,z\n1,,1\n2,,3\n", &labelled("y"), "the label `y` is empty in every row"),
            ("id,topic\n1,ai\n", &labelled("topik"), "did you mean `topic`?"),
            ("id,x\n1,2\n2\n", &none, "line 3: has 1 field"),
        ] {
            let text = table(text, columns).unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn a_late_text_among_numbers_is_refused() {
        let mut text = String::from("id,x\n");
        text.extend((0..2000).map(|i| format!("{i},{i}\n")));
        text += "2000,12o\n";
        let text = table(&text, &ColumnNames::default()).unwrap_err().to_string();
        assert!(text.contains("line 2002: column `x`: `12o` is not a number"), "{text}");
    }
}
