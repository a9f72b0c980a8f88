//! [`TextTable`]: delimited text whose separator is found from its content.

use blnn_kernels::Threads;

use super::chunks::Chunks;
use super::header::Reading;
use super::record::{Field, Separator, Split, split};
use super::row_numbers::is_row_numbers;
use super::source::Source;
use crate::error::{Error, ErrorKind, Result};

/// How many records are looked at to find separator, header and types of columns.
const SAMPLE: usize = 1000;
/// The largest number of pieces a window is cut into for several threads.
const PIECES: usize = 16;

/// A table of delimited text, about to be read from its first record on.
pub(crate) struct TextTable<'a> {
    chunks: Chunks<'a>,
    separator: Separator,
    width: usize,
    header: Option<Vec<String>>,
    comments: usize,
    /// The line that every other one is compared with.
    first_line: usize,
    sample: Vec<Vec<String>>,
    remarks: Vec<String>,
}

/// One record while it is looked at.
pub(crate) struct Record<'r> {
    bytes: &'r [u8],
    fields: &'r [Field],
}

impl<'r> Record<'r> {
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// The text of a field.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub(crate) fn text(&self, field: usize) -> Result<std::borrow::Cow<'r, str>> {
        use std::borrow::Cow;
        let text = match self.fields[field].bytes(self.bytes) {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed),
            Cow::Owned(bytes) => {
                String::from_utf8(bytes).map(Cow::Owned).map_err(|e| e.utf8_error())
            }
        };
        text.map_err(|_| parse(format!("field {} {NOT_UTF8}", field + 1)))
    }
}

const NOT_UTF8: &str = "is not UTF-8 text; save the file as UTF-8 (from Latin-1, for instance, \
                        with `iconv -f latin1 -t utf-8`)";

fn parse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Parse, message)
}

impl TextTable<'static> {
    /// Opens a file; errors of the table do not name it.
    pub(crate) fn open(source: &Source) -> Result<Self> {
        Self::new(Chunks::new(source.reader()?)?)
    }
}

impl<'a> TextTable<'a> {
    pub(crate) fn new(mut chunks: Chunks<'a>) -> Result<Self> {
        let comments = skip_comments(&mut chunks)?;
        let separator = find_separator(&chunks);
        let (sample, width) = sample(&chunks, separator)?;
        let first_line = chunks.line_at(0);
        let (header, remarks) = (None, Vec::new());
        Ok(Self { chunks, separator, width, header, comments, first_line, sample, remarks })
    }

    pub(crate) fn separator(&self) -> Separator {
        self.separator
    }

    /// Number of fields of every record.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Number of lines before the table that begin with `#` or `%`.
    pub(crate) fn comments(&self) -> usize {
        self.comments
    }

    /// The first records; without the header once that is taken.
    pub(crate) fn sample(&self) -> &[Vec<String>] {
        &self.sample
    }

    /// The names of the columns, if the first record was taken as such.
    pub(crate) fn header(&self) -> Option<&[String]> {
        self.header.as_deref()
    }

    /// What the user should know of how the table is read.
    pub(crate) fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Reads the first record as is said; of a guess the user is told, with the flag that names a
    /// column.
    ///
    /// # Errors
    /// If two columns have one name.
    pub(crate) fn read_first(&mut self, reading: Reading, flag: &str) -> Result<()> {
        let first = self.sample.first().map(Vec::as_slice).unwrap_or_default();
        let remark = reading.remark(self.first_line, first, flag);
        self.remarks.extend(remark);
        if reading.is_header() { self.take_header() } else { Ok(()) }
    }

    /// The name of a column, or its number from 1.
    pub(crate) fn column_name(&self, column: usize) -> String {
        let number = || format!("column {}", column + 1);
        let named = self.header().and_then(|names| names.get(column));
        named.filter(|name| !name.is_empty()).map_or_else(number, Clone::clone)
    }

    /// Whether a column has no name and numbers the rows.
    pub(crate) fn is_row_numbers(&self, column: usize) -> bool {
        let name = self.header().and_then(|names| names.get(column));
        let cells = self.sample.iter().filter_map(|row| row.get(column));
        name.is_some_and(|name| is_row_numbers(name, cells))
    }

    /// Takes the first record as the names of the columns.
    ///
    /// # Errors
    /// If two columns have one name.
    pub(crate) fn take_header(&mut self) -> Result<()> {
        if self.sample.is_empty() {
            return Ok(());
        }
        let names = self.sample.remove(0);
        for (column, name) in names.iter().enumerate() {
            if !name.is_empty() && names[..column].contains(name) {
                let message = format!(
                    "line {}: two columns are called `{name}`; rename one",
                    self.first_line
                );
                return Err(parse(message));
            }
        }
        self.header = Some(names);
        let mut fields = Vec::new();
        loop {
            let window = self.chunks.window();
            match split(window, self.separator, self.chunks.is_last(), &mut fields) {
                Split::Record(length) => {
                    self.chunks.consume(length);
                    if !fields.is_empty() {
                        return Ok(());
                    }
                }
                // The sample was read from the same window.
                _ => return Ok(()),
            }
        }
    }

    /// The whole records at hand, and whether no field of them is quoted.
    pub(crate) fn window(&self) -> (&[u8], bool) {
        let window = self.chunks.window();
        let whole = match memchr::memrchr(b'\n', window) {
            _ if self.chunks.is_last() => window.len(),
            Some(end) => end + 1,
            None => 0,
        };
        let whole = &window[..whole];
        (whole, memchr::memchr(b'"', whole).is_none())
    }

    /// Goes on behind `bytes` of the window, and reads on; false at the end of the table.
    pub(crate) fn advance(&mut self, bytes: usize) -> Result<bool> {
        self.chunks.consume(bytes);
        if self.chunks.is_last() {
            return Ok(false);
        }
        self.chunks.more().map(|()| true)
    }

    /// Calls `see` with every record that is left, in order. What it complains about is told
    /// with the number of the line.
    #[cfg(test)]
    pub(crate) fn for_each(
        &mut self,
        mut see: impl FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<()> {
        loop {
            self.see_window(&mut see)?;
            if self.chunks.is_last() {
                return Ok(());
            }
            self.chunks.more()?;
        }
    }

    /// The number of the line on which a record begins, records counting from 0 and the header
    /// being one if it was not taken.
    pub(crate) fn line_of_record(mut self, record: usize) -> Result<usize> {
        let (mut seen, mut line) = (0, 0);
        loop {
            let mut fields = Vec::new();
            let (window, last) = (self.chunks.window(), self.chunks.is_last());
            let mut at = 0;
            while at < window.len() && line == 0 {
                let Split::Record(length) = split(&window[at..], self.separator, last, &mut fields)
                else {
                    break;
                };
                if !fields.is_empty() && seen == record {
                    line = self.chunks.line_at(at);
                }
                seen += usize::from(!fields.is_empty());
                at += length;
            }
            if line > 0 || last {
                return Ok(line);
            }
            self.chunks.consume(at);
            self.chunks.more()?;
        }
    }

    /// Calls `see` with the whole records of the window and moves it behind them.
    pub(crate) fn see_window(
        &mut self,
        see: &mut impl FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let (window, last) = (self.chunks.window(), self.chunks.is_last());
        let mut fields = Vec::new();
        let mut at = 0;
        while at < window.len() {
            let fault = match split(&window[at..], self.separator, last, &mut fields) {
                Split::Record(length) => {
                    let record = Record { bytes: &window[at..], fields: &fields };
                    let seen = self
                        .check(&record)
                        .and_then(|whole| if whole { see(&record) } else { Ok(()) });
                    match seen {
                        Ok(()) => {
                            at += length;
                            continue;
                        }
                        Err(fault) => fault,
                    }
                }
                Split::Incomplete if !last => break,
                Split::Incomplete => parse("a quote is opened here and never closed; close it"),
                Split::StrayText(_) => {
                    parse("there is text after a closing quote; double the quotes inside a field")
                }
            };
            return Err(fault.at(format_args!("line {}", self.chunks.line_at(at))));
        }
        self.chunks.consume(at);
        Ok(())
    }

    /// Whether there is a record at all (a blank line has none), of the right number of fields.
    fn check(&self, record: &Record<'_>) -> Result<bool> {
        match record.len() {
            0 => Ok(false),
            found if found == self.width => Ok(true),
            found => Err(self.ragged(found, record)),
        }
    }

    fn ragged(&self, found: usize, record: &Record<'_>) -> Error {
        let line_end = memchr::memchr(b'\n', record.bytes).unwrap_or(record.bytes.len());
        let line = &record.bytes[..line_end];
        let other = Separator::ALL.into_iter().find(|other| {
            let mut fields = Vec::new();
            *other != self.separator
                && matches!(split(line, *other, true, &mut fields), Split::Record(_))
                && fields.len() == self.width
        });
        let (separator, width, first) = (self.separator, self.width, self.first_line);
        let remedy = match other {
            Some(other) => format!(
                "this line is separated by {other} and the others by {separator}: use one of them"
            ),
            None if found > width => format!("quote a field that holds a {separator}"),
            None => "add what is missing".into(),
        };
        let fields = if found == 1 { "field" } else { "fields" };
        parse(format!("has {found} {fields}, line {first} has {width}; {remedy}"))
    }

    /// Maps pieces of the table in parallel, in order: `map` gets whole records of plain text,
    /// without a quote among them, and may decline, which ends the matter before that window.
    pub(crate) fn map_pieces<T: Send>(
        &mut self,
        threads: &Threads,
        map: impl Fn(&[u8]) -> Option<T> + Sync,
        mut take: impl FnMut(T),
    ) -> Result<Pieces> {
        loop {
            let (window, unquoted) = self.window();
            if !unquoted {
                return Ok(Pieces::Declined);
            }
            let whole = window.len();
            let mut pieces: Vec<(&[u8], Option<T>)> =
                cut(window).into_iter().map(|piece| (piece, None)).collect();
            threads.for_each_owned(&mut pieces, |_, (bytes, out)| *out = map(bytes));
            let mapped: Option<Vec<T>> = pieces.into_iter().map(|(_, out)| out).collect();
            let Some(mapped) = mapped else {
                return Ok(Pieces::Declined);
            };
            mapped.into_iter().for_each(&mut take);
            if !self.advance(whole)? {
                return Ok(Pieces::All);
            }
        }
    }
}

/// Calls `see` with every record of `width` fields in a piece of text without quotes; `None` as
/// soon as it returns that, or a record has another number of fields.
pub(crate) fn records_in(
    piece: &[u8],
    (separator, width): (Separator, usize),
    mut see: impl FnMut(&Record<'_>) -> Option<()>,
) -> Option<()> {
    let mut fields = Vec::with_capacity(width);
    let mut at = 0;
    while at < piece.len() {
        let Split::Record(length) = split(&piece[at..], separator, true, &mut fields) else {
            return None;
        };
        // A blank line has no fields and is no record.
        if fields.len() == width {
            see(&Record { bytes: &piece[at..], fields: &fields })?;
        } else if !fields.is_empty() {
            return None;
        }
        at += length;
    }
    Some(())
}

/// How far [`TextTable::map_pieces`] got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    /// The whole table was taken.
    All,
    /// A piece was declined; the table goes on with the window that holds it.
    Declined,
}

/// `window` in at most [`PIECES`] pieces that end at line ends. The cut depends on the bytes only.
pub(crate) fn cut(window: &[u8]) -> Vec<&[u8]> {
    let step = window.len().div_ceil(PIECES).max(1 << 14);
    let mut pieces = Vec::with_capacity(PIECES);
    let mut rest = window;
    while rest.len() > step {
        let end = memchr::memchr(b'\n', &rest[step..]).map_or(rest.len(), |end| step + end + 1);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// Steps over the lines at the start that are comments.
fn skip_comments(chunks: &mut Chunks<'_>) -> Result<usize> {
    let mut count = 0;
    while chunks.window().first().is_some_and(|start| b"#%".contains(start)) {
        match memchr::memchr(b'\n', chunks.window()) {
            Some(end) => chunks.consume(end + 1),
            None if chunks.is_last() => chunks.consume(chunks.window().len()),
            None => {
                chunks.more()?;
                continue;
            }
        }
        count += 1;
        if chunks.window().is_empty() && !chunks.is_last() {
            chunks.more()?;
        }
    }
    Ok(count)
}

/// The separator under which most of the first records have one and the same number of fields.
fn find_separator(chunks: &Chunks<'_>) -> Separator {
    let mut best = (0, Separator::Comma);
    for separator in Separator::ALL {
        let mut widths = Vec::new();
        for_sample(chunks, separator, |record| widths.push(record.len()));
        widths.retain(|&width| width > 0);
        let usual = usual(&widths);
        let agreeing = widths.iter().filter(|&&width| width == usual && width > 1).count();
        if agreeing > best.0 {
            best = (agreeing, separator);
        }
    }
    best.1
}

/// The number of fields most records have, the first such number where several do.
fn usual(widths: &[usize]) -> usize {
    let count = |width: usize| widths.iter().filter(|&&other| other == width).count();
    let mut distinct: Vec<usize> = Vec::new();
    for &width in widths {
        if !distinct.contains(&width) {
            distinct.push(width);
        }
    }
    let most = distinct.iter().map(|&width| count(width)).max();
    distinct.into_iter().find(|&width| Some(count(width)) == most).unwrap_or(0)
}

fn for_sample(chunks: &Chunks<'_>, separator: Separator, mut see: impl FnMut(&Record<'_>)) {
    let mut fields = Vec::new();
    let mut rest = chunks.window();
    for _ in 0..SAMPLE {
        let Split::Record(length) = split(rest, separator, chunks.is_last(), &mut fields) else {
            return;
        };
        see(&Record { bytes: rest, fields: &fields });
        rest = &rest[length..];
        if rest.is_empty() {
            return;
        }
    }
}

/// The first records as text, and the number of fields of the first.
fn sample(chunks: &Chunks<'_>, separator: Separator) -> Result<(Vec<Vec<String>>, usize)> {
    let mut rows = Vec::new();
    let mut fault = None;
    for_sample(chunks, separator, |record| {
        if record.len() == 0 {
            return;
        }
        let texts = (0..record.len()).map(|field| record.text(field).map(String::from));
        match texts.collect::<Result<Vec<String>>>() {
            Ok(row) => rows.push(row),
            // Later records are complained about when they are read, with their line.
            Err(error) if rows.is_empty() => fault = fault.take().or(Some(error)),
            Err(_) => {}
        }
    });
    if let Some(fault) = fault.filter(|_| rows.is_empty()) {
        return Err(fault.at(format_args!("line {}", chunks.line_at(0))));
    }
    let Some(first) = rows.first() else {
        if chunks.window().iter().all(u8::is_ascii_whitespace) {
            return Err(parse("is empty"));
        }
        let line = chunks.line_at(0);
        return Err(parse(format!(
            "line {line}: cannot be split into fields; is every quote closed, and no line longer \
             than a few megabytes?"
        )));
    };
    let width = first.len();
    Ok((rows, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &[u8]) -> TextTable<'_> {
        TextTable::new(Chunks::new(text).unwrap()).unwrap()
    }

    fn rows(text: &[u8]) -> Result<Vec<Vec<String>>> {
        let mut rows = Vec::new();
        table(text).for_each(|record| {
            rows.push((0..record.len()).map(|f| record.text(f).unwrap().into_owned()).collect());
            Ok(())
        })?;
        Ok(rows)
    }

    #[test]
    fn separators_are_found() {
        for (text, separator) in [
            (&b"a,b\n1,2\n"[..], Separator::Comma),
            (b"a\tb c\n1\t2 3\n", Separator::Tab),
            (b"id;x\n1;2,5\n", Separator::Semicolon),
            (b"1;2,5\n3;4,5\n", Separator::Semicolon),
            (b"1 2\n3 4\n", Separator::Space),
            (b"Ann Lee,Bob Ray\nCy Oz,Di Fo\n", Separator::Comma),
            (b"\"a;b;c\",1\n\"d;e;f\",2\n", Separator::Comma),
            (b"only\nids\n", Separator::Comma),
        ] {
            assert_eq!(table(text).separator(), separator, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn comments_blank_lines_and_line_ends_of_every_kind() {
        let found = rows(b"# SNAP\n# more\r\n1\t2\r\n\r\n3\t4").unwrap();
        assert_eq!(found, [["1", "2"], ["3", "4"]]);
        assert_eq!(table(b"# a\n% b\n1,2\n").comments(), 2);
    }

    #[test]
    fn ragged_records_are_located_and_explained() {
        for (text, wanted) in [
            (&b"a,b\n1,2\n3,4,5\n6,7\n"[..], "line 3: has 3 fields, line 1 has 2; quote a field"),
            (b"a,b\n1,2\n3\n4,5\n", "line 3: has 1 field, line 1 has 2; add what is missing"),
            (b"a,b\n1,2\n3;4\n5,6\n", "separated by semicolon and the others by comma"),
            (b"# c\n\na b\n1 2\n3\t4 5\n", "line 5: has 3 fields, line 2"),
        ] {
            let text = rows(text).unwrap_err().to_string();
            assert!(text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn quotes_and_bytes_that_are_wrong_are_located() {
        let text = rows(b"a,b\n1,\"2\n3,4\n").unwrap_err().to_string();
        assert!(text.contains("line 2: a quote is opened here and never closed"), "{text}");
        let text = rows(b"a,b\n1,\"2\"3\n").unwrap_err().to_string();
        assert!(text.contains("line 2: there is text after a closing quote"), "{text}");
        let mut latin = table(b"a,b\n1,2\n3,caf\xe9\n");
        let text = latin.for_each(|record| record.text(1).map(drop)).unwrap_err().to_string();
        assert!(text.contains("line 3: field 2 is not UTF-8"), "{text}");
        assert!(TextTable::new(Chunks::new(&b" \n\n"[..]).unwrap()).is_err());
    }

    #[test]
    fn the_header_is_taken_once_and_names_are_unique() {
        let mut table = table(b"\nid,\"x, y\"\n1,2\n");
        table.take_header().unwrap();
        assert_eq!(table.header().unwrap(), ["id", "x, y"]);
        assert_eq!(table.column_name(1), "x, y");
        let mut seen = 0;
        let mut count = |_: &Record<'_>| {
            seen += 1;
            Ok(())
        };
        table.for_each(&mut count).unwrap();
        assert_eq!(seen, 1);
        let mut twice = super::TextTable::new(Chunks::new(&b"x,x\n1,2\n"[..]).unwrap()).unwrap();
        assert!(twice.take_header().unwrap_err().to_string().contains("called `x`"));
    }

    #[test]
    fn pieces_come_in_order_and_stop_at_quotes() {
        let lines: Vec<String> = (0..30_000).map(|i| format!("{i},{}\n", i + 1)).collect();
        let text = lines.concat();
        for count in [1, 2] {
            let mut read = Vec::new();
            let end = table(text.as_bytes()).map_pieces(
                &Threads::new(count),
                |piece| Some(piece.to_vec()),
                |piece| read.extend(piece),
            );
            assert_eq!(end.unwrap(), Pieces::All);
            assert!(read == text.as_bytes());
        }
        let quoted = text.clone() + "\"a\",b\n";
        let end = table(quoted.as_bytes()).map_pieces(&Threads::new(1), |_| Some(()), drop);
        assert_eq!(end.unwrap(), Pieces::Declined);
    }
}
