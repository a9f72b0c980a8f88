//! Splitting one record of delimited text into its fields.

use std::borrow::Cow;
use std::fmt;

/// What stands between the fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// `,`
    Comma,
    /// A tab.
    Tab,
    /// `;`
    Semicolon,
    /// Any number of spaces and tabs.
    Space,
}

impl Separator {
    /// All of them, the surest first: decimal commas are common in files with semicolons, and
    /// spaces in files with commas.
    pub(crate) const ALL: [Self; 4] = [Self::Tab, Self::Semicolon, Self::Comma, Self::Space];

    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Tab => b'\t',
            Self::Semicolon => b';',
            Self::Space => b' ',
        }
    }

    /// Blanks around a field that do not belong to it.
    fn is_blank(self, byte: u8) -> bool {
        byte == b' ' || byte == b'\r' || (byte == b'\t' && self != Self::Tab)
    }

    fn ends_field(self, byte: u8) -> bool {
        byte == self.byte() || (self == Self::Space && byte == b'\t')
    }
}

impl fmt::Display for Separator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Comma => "comma",
            Self::Tab => "tab",
            Self::Semicolon => "semicolon",
            Self::Space => "space",
        })
    }
}

/// Where a field is, without the blanks and quotes around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    start: usize,
    end: usize,
    /// Whether it was quoted and holds doubled quotes.
    doubled: bool,
}

impl Field {
    /// The same field in bytes that begin `offset` earlier.
    pub(crate) fn moved(self, offset: usize) -> Self {
        Self { start: self.start + offset, end: self.end + offset, ..self }
    }

    /// The field as it stands in the bytes that were split.
    pub(crate) fn raw(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.end]
    }

    /// The field with doubled quotes made single.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        let raw = self.raw(bytes);
        if !self.doubled {
            return Cow::Borrowed(raw);
        }
        let mut single = Vec::with_capacity(raw.len());
        let mut rest = raw;
        while let Some(quote) = memchr::memchr(b'"', rest) {
            single.extend_from_slice(&rest[..=quote]);
            rest = rest.get(quote + 2..).unwrap_or_default();
        }
        single.extend_from_slice(rest);
        Cow::Owned(single)
    }
}

/// What was found at the start of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// A record of this many bytes, its line end included.
    Record(usize),
    /// A record that does not end in these bytes.
    Incomplete,
    /// Text after a closing quote, at this offset.
    StrayText(usize),
}

/// Splits the record at the start of `bytes` into `fields`. With `last` the bytes are all there
/// is, and the last record needs no line end. A blank line has no fields.
pub(crate) fn split(
    bytes: &[u8],
    separator: Separator,
    last: bool,
    fields: &mut Vec<Field>,
) -> Split {
    fields.clear();
    let mut at = 0;
    loop {
        while at < bytes.len() && separator.is_blank(bytes[at]) {
            at += 1;
        }
        let (field, end) = if bytes.get(at) == Some(&b'"') {
            match quoted(bytes, at, separator) {
                Ok(found) => found,
                Err(fault) => return fault,
            }
        } else {
            plain(bytes, at, separator)
        };
        match bytes.get(end) {
            None if !last => return Split::Incomplete,
            None | Some(b'\n') => {
                let is_empty = field.start == field.end && field.start == at;
                let is_trailing = is_empty && bytes.get(at) != Some(&b'"');
                // Spaces before the first or after the last field separate nothing.
                if !(is_trailing && (fields.is_empty() || separator == Separator::Space)) {
                    fields.push(field);
                }
                return Split::Record((end + 1).min(bytes.len()));
            }
            Some(_) => fields.push(field),
        }
        at = end + 1;
    }
}

/// A field without quotes from `start` on, and where it ends: at a separator, a line end or the
/// end of the bytes.
fn plain(bytes: &[u8], start: usize, separator: Separator) -> (Field, usize) {
    let ends = |&byte: &u8| byte == b'\n' || separator.ends_field(byte);
    let end = bytes[start..].iter().position(ends).map_or(bytes.len(), |length| start + length);
    let mut trimmed = end;
    while trimmed > start && separator.is_blank(bytes[trimmed - 1]) {
        trimmed -= 1;
    }
    (Field { start, end: trimmed, doubled: false }, end)
}

/// A field whose opening quote is at `open`.
fn quoted(bytes: &[u8], open: usize, separator: Separator) -> Result<(Field, usize), Split> {
    let (mut at, mut doubled) = (open + 1, false);
    let close = loop {
        let quote = at + memchr::memchr(b'"', &bytes[at..]).ok_or(Split::Incomplete)?;
        if bytes.get(quote + 1) != Some(&b'"') {
            break quote;
        }
        doubled = true;
        at = quote + 2;
    };
    let mut end = close + 1;
    while end < bytes.len() && separator.is_blank(bytes[end]) && !separator.ends_field(bytes[end]) {
        end += 1;
    }
    match bytes.get(end) {
        Some(&byte) if byte != b'\n' && !separator.ends_field(byte) => Err(Split::StrayText(end)),
        _ => Ok((Field { start: open + 1, end: close, doubled }, end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(line: &str, separator: Separator) -> Vec<String> {
        let mut fields = Vec::new();
        let found = split(line.as_bytes(), separator, true, &mut fields);
        assert_eq!(found, Split::Record(line.len()), "{line}");
        let text = |f: &Field| String::from_utf8(f.bytes(line.as_bytes()).into_owned()).unwrap();
        fields.iter().map(text).collect()
    }

    #[test]
    fn fields_are_split_and_trimmed() {
        assert_eq!(texts("a, b ,\"c,\"\"d\"\"\"\r\n", Separator::Comma), ["a", "b", "c,\"d\""]);
        assert_eq!(texts("a\tb c\t\n", Separator::Tab), ["a", "b c", ""]);
        assert_eq!(texts("  1 \t 2  \n", Separator::Space), ["1", "2"]);
        assert_eq!(texts("\"x y\" z\n", Separator::Space), ["x y", "z"]);
        assert_eq!(texts("1;2", Separator::Semicolon), ["1", "2"]);
        assert_eq!(texts(",\n", Separator::Comma), ["", ""]);
        assert_eq!(texts("\"\"\n", Separator::Comma), [""]);
        assert_eq!(texts("5\" disk,x\n", Separator::Comma), ["5\" disk", "x"]);
        assert_eq!(texts("\"two\nlines\",x\n", Separator::Comma), ["two\nlines", "x"]);
    }

    #[test]
    fn blank_lines_have_no_fields() {
        for line in ["\n", "  \r\n", ""] {
            assert!(texts(line, Separator::Comma).is_empty(), "{line:?}");
            assert!(texts(line, Separator::Space).is_empty(), "{line:?}");
        }
    }

    #[test]
    fn what_does_not_end_is_incomplete_and_stray_text_is_found() {
        let mut fields = Vec::new();
        assert_eq!(split(b"a,b", Separator::Comma, false, &mut fields), Split::Incomplete);
        assert_eq!(split(b"a,\"b\n", Separator::Comma, true, &mut fields), Split::Incomplete);
        assert_eq!(split(b"\"a\"x,b\n", Separator::Comma, true, &mut fields), Split::StrayText(3));
    }

    proptest! {
        #[test]
        fn quoted_fields_come_back(values in prop::collection::vec("[a-c,;\"\n \t]{0,5}", 1..5)) {
            let quote = |text: &String| format!("\"{}\"", text.replace('"', "\"\""));
            for separator in Separator::ALL {
                let between = (separator.byte() as char).to_string();
                let line = values.iter().map(quote).collect::<Vec<_>>().join(&between) + "\n";
                prop_assert_eq!(&texts(&line, separator), &values);
            }
        }

        #[test]
        fn any_bytes_are_split_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            for separator in Separator::ALL {
                let mut fields = Vec::new();
                let mut at = 0;
                while let Split::Record(length) = split(&bytes[at..], separator, true, &mut fields) {
                    for field in &fields {
                        let _ = field.bytes(&bytes[at..]);
                    }
                    at += length;
                    if length == 0 {
                        break;
                    }
                }
            }
        }
    }
}
