//! [`Chunks`]: a text file, plain or gzip, read a few megabytes at a time.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::source::GZIP;
use crate::error::{Error, ErrorKind, Result};

/// How much is read at once: enough to keep several threads busy, little beside any large graph.
const CHUNK: usize = 4 << 20;
/// The longest line: sixty thousand numbers of full length fit many times, a file without line
/// ends does not fill the memory.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// The bytes of a text file, of which the reader sees a window that it moves along.
pub(crate) struct Chunks<'a> {
    source: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    /// `buffer[begin..end]` is read and not yet consumed.
    begin: usize,
    end: usize,
    /// Whether the source has nothing more.
    finished: bool,
    /// Whether lines end with a carriage return alone, as on old Macs and from some spreadsheets:
    /// each is made a line feed as it is read.
    returns: bool,
    /// Number of line ends before `begin`.
    lines: usize,
}

impl<'a> Chunks<'a> {
    /// Reads from any source; what begins as gzip does is unpacked on the way. Errors do not name
    /// the file.
    pub(crate) fn new(source: impl Read + 'a) -> Result<Self> {
        let mut source = BufReader::with_capacity(1 << 16, source);
        let start = io::BufRead::fill_buf(&mut source).map_err(|e| unreadable(&e))?;
        let source: Box<dyn Read + 'a> = if start.starts_with(&GZIP) {
            Box::new(MultiGzDecoder::new(source))
        } else {
            Box::new(source)
        };
        let (buffer, finished, returns) = (vec![0; CHUNK], false, false);
        let mut chunks = Self { source, buffer, begin: 0, end: 0, finished, returns, lines: 0 };
        chunks.more()?;
        chunks.find_line_ends();
        chunks.skip_mark()?;
        Ok(chunks)
    }

    /// Sees whether lines end with a carriage return alone.
    fn find_line_ends(&mut self) {
        let window = self.window();
        // The line feed of the last one may be yet to come.
        let seen = if self.finished { window } else { &window[..window.len().saturating_sub(1)] };
        self.returns =
            memchr::memchr(b'\n', window).is_none() && memchr::memchr(b'\r', seen).is_some();
        self.turn_returns(self.begin);
    }

    /// Makes line feeds of the carriage returns from `start` on, where those end lines.
    fn turn_returns(&mut self, start: usize) {
        if self.returns {
            let read = self.buffer[start..self.end].iter_mut();
            read.filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
        }
    }

    /// Steps over a UTF-8 mark and refuses what is not UTF-8 by its first bytes.
    fn skip_mark(&mut self) -> Result<()> {
        let start = self.window();
        if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
            let message = "is UTF-16 text; save it as UTF-8";
            return Err(Error::new(ErrorKind::Parse, message));
        }
        if start.starts_with(b"\xef\xbb\xbf") {
            self.begin += 3;
        }
        Ok(())
    }

    /// What is read and not yet consumed.
    pub(crate) fn window(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Whether the window reaches to the end of the source.
    pub(crate) fn is_last(&self) -> bool {
        self.finished
    }

    /// The number, from 1, of the line that begins at `offset` of the window.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        1 + self.lines + memchr::memchr_iter(b'\n', &self.window()[..offset]).count()
    }

    /// Moves the window on by `bytes`.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.lines = self.line_at(bytes) - 1;
        self.begin += bytes;
    }

    /// Reads on: keeps what is not consumed and fills the buffer behind it.
    ///
    /// # Errors
    /// If the source cannot be read, or nothing of a window longer than a line may be was
    /// consumed.
    pub(crate) fn more(&mut self) -> Result<()> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if self.end >= MAX_LINE {
            let (line, most) = (self.line_at(0), MAX_LINE >> 20);
            let message = format!(
                "line {line}: is longer than {most} MiB; is this a text table with one record a \
                 line, and is every quote closed?"
            );
            return Err(Error::new(ErrorKind::Parse, message));
        }
        if self.end * 2 > self.buffer.len() {
            self.buffer.resize((self.buffer.len() * 2).min(2 * MAX_LINE), 0);
        }
        let kept = self.end;
        while self.end < self.buffer.len() && !self.finished {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.finished = true,
                Ok(count) => self.end += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(unreadable(&e)),
            }
        }
        self.turn_returns(kept);
        Ok(())
    }
}

pub(crate) fn unreadable(cause: &io::Error) -> Error {
    let message = match cause.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the gzip data end too early; the file is cut short, copy or download it again".into()
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            format!("the gzip data are damaged ({cause}); copy or download the file again")
        }
        _ => return Error::new(ErrorKind::Io, format!("cannot be read ({cause})")),
    };
    Error::new(ErrorKind::Parse, message)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::Write as _;

    pub(in crate::data::own) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    /// Everything, consumed in pieces of `step` bytes.
    fn drain(bytes: &[u8], step: usize) -> Result<Vec<u8>> {
        let mut chunks = Chunks::new(bytes)?;
        let mut all = Vec::new();
        loop {
            let take = step.min(chunks.window().len());
            all.extend_from_slice(&chunks.window()[..take]);
            chunks.consume(take);
            if chunks.window().is_empty() && chunks.is_last() {
                return Ok(all);
            }
            chunks.more()?;
        }
    }

    #[test]
    fn plain_gzip_and_joined_gzip_are_read_alike() {
        let text = b"a,b\n1,2\n".repeat(1000);
        assert_eq!(drain(&text, 1000).unwrap(), text);
        assert_eq!(drain(&gzip(&text), 1000).unwrap(), text);
        let joined = [gzip(&text), gzip(b"3,4\n")].concat();
        assert_eq!(drain(&joined, 999).unwrap(), [&text[..], b"3,4\n"].concat());
    }

    #[test]
    fn gzip_that_was_cut_or_altered_is_refused() {
        let whole = gzip(&b"a,b\n1,2\n".repeat(1000));
        let text = drain(&whole[..whole.len() - 9], 100).unwrap_err().to_string();
        assert!(text.contains("end too early"), "{text}");
        let mut altered = whole.clone();
        let last = altered.len() - 6;
        altered[last] ^= 1;
        assert_eq!(drain(&altered, 100).unwrap_err().kind(), ErrorKind::Parse);
    }

    #[test]
    fn marks_are_seen() {
        assert_eq!(drain(b"\xef\xbb\xbfid\n", 9).unwrap(), b"id\n");
        let text = drain(b"\xff\xfei\0d\0", 9).unwrap_err().to_string();
        assert!(text.contains("save it as UTF-8"), "{text}");
    }

    #[test]
    fn carriage_returns_alone_end_lines() {
        assert_eq!(drain(b"a,b\r1,2\r", 9).unwrap(), b"a,b\n1,2\n");
        assert_eq!(drain(b"a,b\r\n1,2\r\n", 9).unwrap(), b"a,b\r\n1,2\r\n");
        let long = b"12345,67890\r".repeat(CHUNK / 6);
        let wanted: Vec<u8> = long.iter().map(|&b| if b == b'\r' { b'\n' } else { b }).collect();
        assert!(drain(&long, 100_000).unwrap() == wanted, "over several windows");
        let mut chunks = Chunks::new(&b"a\rb\r"[..]).unwrap();
        chunks.consume(2);
        assert_eq!(chunks.line_at(0), 2);
    }

    /// Two gigabytes without a line end: refused after sixteen megabytes.
    #[test]
    fn an_endless_line_is_refused_early() {
        struct Counting<'a>(&'a mut u64);
        impl Read for Counting<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let left = (2u64 << 30).saturating_sub(*self.0);
                let count = left.min(buffer.len() as u64) as usize;
                buffer[..count].fill(b'7');
                *self.0 += count as u64;
                Ok(count)
            }
        }
        let mut read = 0;
        let mut chunks = Chunks::new(Counting(&mut read)).unwrap();
        let error = loop {
            if let Err(error) = chunks.more() {
                break error;
            }
        };
        assert!(error.to_string().contains("line 1: is longer than 16 MiB"), "{error}");
        assert!(chunks.buffer.len() <= 2 * MAX_LINE);
        drop(chunks);
        assert!(read <= 2 * MAX_LINE as u64 + (1 << 16), "{read}");
    }

    #[test]
    fn lines_are_counted_over_windows() {
        let mut chunks = Chunks::new(&b"a\nb\nc\n"[..]).unwrap();
        chunks.consume(2);
        assert_eq!((chunks.line_at(0), chunks.line_at(2)), (2, 3));
    }
}
