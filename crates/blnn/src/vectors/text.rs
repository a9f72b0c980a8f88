//! Embeddings as text: numbers separated by commas, semicolons, tabs or blanks, with or without a
//! header and a column of ids; word2vec's count of rows and columns on the first line.

use std::borrow::Cow;

use blnn_kernels::Matrix;

use super::names::{Candidate, Roles, is_id_name};
use super::{Vectors, parse};
use crate::error::Result;

/// Records that are looked at to find the separator.
const SAMPLE: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Byte(u8),
    /// Any run of blanks; quotes mean nothing.
    Blanks,
}

const SEPARATORS: [Separator; 4] =
    [Separator::Byte(b'\t'), Separator::Byte(b','), Separator::Byte(b';'), Separator::Blanks];

/// One record: the line it begins on, and its fields.
struct Row<'a> {
    line: usize,
    fields: Vec<Cow<'a, str>>,
}

impl Row<'_> {
    /// How many fields from the given one on are numbers.
    fn numbers(&self, from: usize) -> usize {
        self.fields[from..].iter().filter(|field| number(field).is_some()).count()
    }
}

pub(super) fn read(bytes: &[u8], label: Option<&str>) -> Result<Vectors> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|fault| {
        let before = &bytes[..fault.valid_up_to()];
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        parse(format!(
            "line {line}: is neither UTF-8 text nor a .npy, .npz or parquet file; save it as one"
        ))
    })?;
    if let Some(rest) = after_word2vec_head(text) {
        return table(Records::new(rest, Separator::Blanks, 2), true, label);
    }
    table(Records::new(text, find_separator(text), 1), false, label)
}

/// What follows the first line, if that is word2vec's: the number of rows and of columns.
fn after_word2vec_head(text: &str) -> Option<&str> {
    let (head, rest) = text.split_once('\n')?;
    let mut counts = head.split_ascii_whitespace().map(str::parse::<usize>);
    let (Some(Ok(rows)), Some(Ok(cols)), None) = (counts.next(), counts.next(), counts.next())
    else {
        return None;
    };
    let mut lines = rest.lines().filter(|line| !line.trim().is_empty());
    let width = lines.next()?.split_ascii_whitespace().count();
    (width == cols.checked_add(1)? && lines.count() + 1 == rows).then_some(rest)
}

/// The separator under which most of the first records are a name or number and then numbers; if
/// there is none, as where ids stand behind an index, the one with the most numbers.
fn find_separator(text: &str) -> Separator {
    let fits =
        |row: &Row<'_>| usize::from(row.fields.len() > 1 && row.numbers(1) + 1 == row.fields.len());
    let numbers = |row: &Row<'_>| if row.fields.len() > 1 { row.numbers(0) } else { 0 };
    let (separator, share) = best_separator(text, fits);
    if share > 0.5 { separator } else { best_separator(text, numbers).0 }
}

/// The separator with the most points over the first records, the first of equals, and how many
/// points a record has then; the comma where none has any.
fn best_separator(text: &str, points: impl Fn(&Row<'_>) -> usize) -> (Separator, f64) {
    let (mut best, mut found) = (0, (Separator::Byte(b','), 0.0));
    for separator in SEPARATORS {
        let rows: Vec<_> = Records::new(text, separator, 1).take(SAMPLE).flatten().collect();
        let width = rows.last().map_or(0, |row| row.fields.len());
        // Blanks swallow the empty name at the start of a header, and so the width betrays them.
        let alike = rows.iter().filter(|row| row.fields.len() == width);
        let sum = alike.map(&points).sum();
        if sum > best {
            (best, found) = (sum, (separator, sum as f64 / rows.len() as f64));
        }
    }
    found
}

fn number(field: &str) -> Option<f32> {
    field.trim().parse().ok()
}

/// Whether a field is a number that neither counts nor names anything.
fn is_fraction(field: &str) -> bool {
    field.contains('.') && number(field).is_some_and(f32::is_finite)
}

/// The records of a text; blank lines are passed over.
struct Records<'a> {
    rest: &'a str,
    separator: Separator,
    line: usize,
}

impl<'a> Records<'a> {
    fn new(rest: &'a str, separator: Separator, line: usize) -> Self {
        Self { rest, separator, line }
    }

    /// The rest of the line, without its end.
    fn take_line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        self.line += 1;
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// A record with quotes, which may go over several lines.
    fn take_quoted(&mut self, separator: u8) -> Result<Vec<Cow<'a, str>>> {
        let (mut fields, first) = (Vec::new(), self.line);
        loop {
            let field = match self.rest.strip_prefix('"') {
                Some(inside) => self.take_quotes(inside, first)?,
                None => self.take_plain(separator),
            };
            fields.push(field);
            let ends = self.rest.strip_prefix("\r\n").or(self.rest.strip_prefix('\n'));
            if let Some(next) = self.rest.strip_prefix(separator as char) {
                self.rest = next;
            } else if ends.is_some() || self.rest.is_empty() {
                self.rest = ends.unwrap_or("");
                self.line += 1;
                return Ok(fields);
            } else {
                let line = self.line;
                return Err(parse(format!(
                    "line {line}: text behind a closing quote; quote it too"
                )));
            }
        }
    }

    fn take_plain(&mut self, separator: u8) -> Cow<'a, str> {
        let end = self.rest.find([separator as char, '\n']).unwrap_or(self.rest.len());
        let (field, rest) = self.rest.split_at(end);
        // A carriage return belongs to the end of the line.
        let field = if rest.starts_with('\n') || rest.is_empty() {
            field.strip_suffix('\r').unwrap_or(field)
        } else {
            field
        };
        self.rest = rest;
        Cow::Borrowed(field)
    }

    /// The text up to the closing quote; two quotes stand for one.
    fn take_quotes(&mut self, mut inside: &'a str, first: usize) -> Result<Cow<'a, str>> {
        let mut text = String::new();
        loop {
            let Some((before, after)) = inside.split_once('"') else {
                return Err(parse(format!("line {first}: a quote is never closed")));
            };
            self.line += before.matches('\n').count();
            text += before;
            let Some(more) = after.strip_prefix('"') else {
                self.rest = after;
                return Ok(Cow::Owned(text));
            };
            text.push('"');
            inside = more;
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Row<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let line = self.line;
            let ahead = self.rest.split('\n').next().unwrap_or_default();
            if ahead.trim().is_empty() {
                self.take_line();
                continue;
            }
            let fields = match self.separator {
                Separator::Blanks => {
                    let line = self.take_line();
                    Ok(line.split_ascii_whitespace().map(Cow::Borrowed).collect())
                }
                Separator::Byte(byte) if ahead.contains('"') => self.take_quoted(byte),
                Separator::Byte(byte) => {
                    Ok(self.take_line().split(byte as char).map(Cow::Borrowed).collect())
                }
            };
            if fields.is_err() {
                self.rest = "";
            }
            return Some(fields.map(|fields| Row { line, fields }));
        }
    }
}

/// The names of the columns, if the first record holds names: something that is no number where
/// the others have numbers, or columns that are merely counted.
fn is_header(fields: &[Cow<'_, str>]) -> bool {
    let counted = |fields: &[Cow<'_, str>], from: usize| {
        fields.len() > 1
            && fields.iter().enumerate().all(|(k, f)| f.trim() == (k + from).to_string())
    };
    let named = number(&fields[0]).is_none();
    // A name among fractions is a value that is missing, unless an `id` says that these are names.
    if fields.iter().skip(1).any(|field| is_fraction(field)) && !is_id_name(&fields[0]) {
        return false;
    }
    if fields.iter().skip(1).any(|field| number(field).is_none()) || fields.len() == 1 && named {
        return true;
    }
    let counts = counted(&fields[1..], 0) || counted(&fields[1..], 1);
    counted(fields, 0) || named && (counts || is_id_name(&fields[0]))
}

/// The matrix being read: numbers, and one column that may turn out to be ids.
struct Columns {
    width: usize,
    first_line: usize,
    /// Which columns the names tell apart.
    roles: Roles,
    /// The column that may hold ids, as text: the one that is called so, or the first.
    key: usize,
    keys: Vec<String>,
    /// The first line whose key is no number, and the key.
    first_text: Option<(usize, String)>,
    numbers: Vec<f32>,
    /// Some number was written with a fraction or an exponent.
    fractions: bool,
}

impl Columns {
    fn push(&mut self, row: &Row<'_>) -> Result<()> {
        let (found, wanted) = (row.fields.len(), self.width);
        if found != wanted {
            return Err(parse(format!(
                "line {}: {found} fields, line {} has {wanted}; make all lines alike",
                row.line, self.first_line
            )));
        }
        for (column, field) in row.fields.iter().enumerate() {
            if column == self.key {
                // Blanks in quotes are part of an id.
                self.push_key(
                    row.line,
                    match field {
                        Cow::Owned(quoted) => quoted,
                        Cow::Borrowed(plain) => plain.trim(),
                    },
                );
                continue;
            }
            if !self.roles.is_free(column) {
                continue;
            }
            let value = number(field).ok_or_else(|| {
                let line = row.line;
                parse(format!("line {line}: `{field}` in column {} is no number", column + 1))
            })?;
            self.fractions |= field.contains(['.', 'e', 'E']);
            self.numbers.push(value);
        }
        Ok(())
    }

    fn push_key(&mut self, line: usize, key: &str) {
        if self.first_text.is_none() && number(key).is_none() {
            self.first_text = Some((line, key.to_owned()));
        }
        self.keys.push(key.to_owned());
    }

    /// Whether the key column holds ids though nothing says so: texts, or different whole numbers
    /// beside fractions.
    ///
    /// # Errors
    /// If it holds fractions and something that is no number: a value is missing.
    fn keys_look_like_ids(&self) -> Result<bool> {
        if let Some((line, text)) = &self.first_text {
            if self.keys.iter().any(|key| is_fraction(key)) {
                return Err(parse(format!(
                    "line {line}: `{text}` in column {} is no number; fill it in, or call the column \
                     of ids `id`",
                    self.key + 1
                )));
            }
            return Ok(true);
        }
        let whole = self.keys.iter().all(|key| key.bytes().all(|b| b.is_ascii_digit()));
        let mut distinct: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        distinct.sort_unstable();
        distinct.dedup();
        Ok(whole && self.fractions && distinct.len() == self.keys.len() && self.inner() > 1)
    }

    /// The number of columns of numbers beside the key.
    fn inner(&self) -> usize {
        self.numbers.len() / self.keys.len().max(1)
    }

    fn finish(self, ids: bool) -> Result<Vectors> {
        let (rows, inner, left_out) = (self.keys.len(), self.inner(), self.roles.told);
        if ids {
            if inner == 0 {
                return Err(parse("has ids and no numbers"));
            }
            let matrix = Matrix::from_vec(rows, inner, self.numbers);
            return Ok(Vectors { matrix, ids: Some(self.keys), left_out });
        }
        // A key that is none is the first column that counts.
        let key = |i: usize| number(&self.keys[i]).unwrap_or(f32::NAN);
        let matrix = Matrix::from_fn(rows, inner + 1, |i, j| match j.checked_sub(1) {
            None => key(i),
            Some(j) => self.numbers[i * inner + j],
        });
        Ok(Vectors { matrix, ids: None, left_out })
    }
}

/// Reads the records; `named` says that each begins with an id and there is no header.
fn table(mut records: Records<'_>, named: bool, label: Option<&str>) -> Result<Vectors> {
    let first = records.next().transpose()?.ok_or_else(|| parse("is empty"))?;
    let header = !named && is_header(&first.fields);
    let roles = if header { roles_of(&first, label) } else { Roles::default() };
    let told = roles.ids.is_some();
    let Some(key) = roles.ids.or_else(|| (0..first.fields.len()).find(|&c| roles.is_free(c)))
    else {
        return Err(parse(format!("holds no vectors: {} alone", roles.told.join(", "))));
    };
    let mut columns = Columns {
        width: first.fields.len(),
        first_line: first.line,
        roles,
        key,
        keys: Vec::new(),
        first_text: None,
        numbers: Vec::new(),
        fractions: false,
    };
    if !header {
        columns.push(&first)?;
    }
    for row in records {
        columns.push(&row?)?;
    }
    if columns.keys.is_empty() {
        return Err(parse("holds no numbers"));
    }
    let ids = named || told || columns.keys_look_like_ids()?;
    columns.finish(ids)
}

/// What the names in a header tell.
fn roles_of(header: &Row<'_>, label: Option<&str>) -> Roles {
    let candidate = |name| Candidate { name, nameable: true };
    let columns: Vec<_> = header.fields.iter().map(|name| candidate(name)).collect();
    Roles::of(&columns, label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> (Vec<Vec<f32>>, Option<Vec<String>>) {
        let Vectors { matrix, ids, .. } = read(text.as_bytes(), None).unwrap();
        ((0..matrix.rows()).map(|i| matrix.row(i).to_vec()).collect(), ids)
    }

    fn fault(text: &str) -> String {
        read(text.as_bytes(), None).unwrap_err().to_string()
    }

    #[expect(clippy::unnecessary_wraps, reason = "what is compared may be absent")]
    fn names(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|&name| name.to_owned()).collect())
    }

    const ROWS: [[f32; 2]; 2] = [[0.5, 1.0], [-1.0, 2e-3]];

    #[test]
    fn headers_and_ids_are_found_or_not_there() {
        let rows: Vec<Vec<f32>> = ROWS.iter().map(|row| row.to_vec()).collect();
        for (text, ids) in [
            ("0.5,1\n-1,2e-3\n", None),
            ("x,y\n0.5,1\n-1,2e-3", None),
            ("0,1\n0.5,1\n-1,2e-3", None),
            ("0.5\t1\r\n-1\t2e-3\r\n", None),
            ("0.5 1\n-1 2e-3\n", None),
            ("0.5;1\n\n-1;2e-3\n\n", None),
            ("a,0.5,1\nb,-1,2e-3\n", names(&["a", "b"])),
            ("7,0.5,1\n3,-1,2e-3\n", names(&["7", "3"])),
            ("id,e0,e1\na,0.5,1\nb,-1,2e-3\n", names(&["a", "b"])),
            (",0,1\n7,0.5,1\n3,-1,2e-3\n", names(&["7", "3"])),
            ("x,Node,y\n0.5,a,1\n-1,b,2e-3\n", names(&["a", "b"])),
            ("word,x,y\n\"a,\"\"1\"\"\n\",0.5,1\nb,-1,2e-3\n", names(&["a,\"1\"\n", "b"])),
            ("\u{feff}id;x;y\na;0.5;1\nb;-1;2e-3\n", names(&["a", "b"])),
            ("2 2\na,1 0.5 1\nb 2e0 2e-3\n", None),
        ] {
            if text.starts_with("2 2") {
                assert_eq!(found(text).1, names(&["a,1", "b"]));
                continue;
            }
            assert_eq!(found(text), (rows.clone(), ids), "{text:?}");
        }
    }

    /// What `df.to_csv()` writes, with ids of numbers or texts and any separator.
    #[test]
    fn ids_that_are_called_so_go_before_an_index() {
        for ids in [["7", "3"], ["a", "b"]] {
            for separator in [",", ";", "\t"] {
                let [first, second] = ids;
                let text = format!(",id,0,1\n0,{first},0.5,1\n1,{second},-1,2e-3\n");
                let found = read(text.replace(',', separator).as_bytes(), None).unwrap();
                assert_eq!(found.matrix.data(), ROWS.as_flattened(), "{text:?}");
                assert_eq!(found.ids, names(&ids));
                assert_eq!(found.left_out, ["column 1 (the index of a data frame)"]);
            }
        }
    }

    #[test]
    fn classes_are_no_dimension() {
        let without = |text: &str, label| {
            let found = read(text.as_bytes(), label).unwrap();
            assert_eq!(found.matrix.data(), ROWS.as_flattened(), "{text:?}");
            (found.ids, found.left_out.join(", "))
        };
        let told = "`y` (called as the classes are)".to_owned();
        let merged = "id,y,e0,e1\na,0,0.5,1\nb,1,-1,2e-3\n";
        assert_eq!(without(merged, Some("y")), (names(&["a", "b"]), told.clone()));
        assert_eq!(without("y,e0,e1\n0,0.5,1\n1,-1,2e-3\n", Some("y")), (None, told));
        let texts = "id,e0,Label,e1\na,0.5,dog,1\nb,-1,cat,2e-3\n";
        let told = "`Label` (called as the classes are)".to_owned();
        assert_eq!(without(texts, None), (names(&["a", "b"]), told));
        assert_eq!(read(merged.as_bytes(), None).unwrap().matrix.cols(), 3);
        let error = read(b"label\n1\n2\n", None).unwrap_err().to_string();
        assert!(error.contains("no vectors: `label` (called as the classes are) alone"), "{error}");
    }

    #[test]
    fn word2vec_is_told_from_two_numbers() {
        assert_eq!(found("2 1\na 1\nb 2\n"), (vec![vec![1.0], vec![2.0]], names(&["a", "b"])));
        // Ids that are numbers, and a blank at the end of lines as some programs write it.
        let numbered = found("2 2\n10 0.5 1 \n11 -1 2 \n");
        assert_eq!(numbered.1, names(&["10", "11"]));
        // No word2vec: three rows of two numbers.
        assert_eq!(found("4 1\n3 4\n5 6\n").0, [[4.0, 1.0], [3.0, 4.0], [5.0, 6.0]]);
    }

    #[test]
    fn faults_name_their_line() {
        assert!(fault("a,1,2\nb,1\n").contains("line 2: 2 fields, line 1 has 3"));
        assert!(fault("a,1,2\nb,1,x\n").contains("line 2: `x` in column 3 is no number"));
        assert!(fault("a,1,2\n\"b,1,2\n").contains("line 2: a quote is never closed"));
        assert!(fault("a,1,2\n\"b\"c,1,2\n").contains("line 2: text behind a closing quote"));
        assert!(fault("id,x\n").contains("no numbers"));
        assert!(fault("\n \n").contains("empty"));
        assert!(fault("a\nb\n").contains("ids and no numbers"));
        // A value that is missing makes neither a header of a row nor ids of a dimension.
        assert!(fault("a,0.5,NA\nb,1.5,2\n").contains("line 1: `NA` in column 3"));
        assert!(fault("x,y\n0.5,1\n,2\n").contains("line 3: `` in column 1 is no number"));
        assert!(fault("id\nb\n").contains("ids and no numbers"));
        let error = read(b"a,1\nb,\xff\n", None).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("UTF-8"), "{error}");
    }

    #[test]
    fn blanks_in_quotes_belong_to_an_id() {
        assert_eq!(found("a,0.5\n\" a\",1\n b ,2\n").1, names(&["a", " a", "b"]));
    }

    #[test]
    fn one_column_of_numbers_is_a_matrix() {
        assert_eq!(found("0.5\n1\n").0, [[0.5], [1.0]]);
        assert_eq!(found("x\n0.5\n1\n").0, [[0.5], [1.0]]);
    }
}
