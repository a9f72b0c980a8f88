//! [`Source`]: a user's file, told apart by its first bytes and read as often as is needed, be it
//! a file on disk, a pipe or the terminal.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

use super::chunks::{MAX_LINE, unreadable};
use super::foreign;
use crate::error::{Error, ErrorKind, Result};

/// How much of a file is looked at to find out what it is: the mark of a tar archive is farthest
/// from the start.
const START: u64 = 512;
/// The most that is kept in memory of what cannot be read twice.
const MOST_HELD: u64 = 16 << 30;
/// What is packed may unpack to this many bytes, and [`EXPANSION`] times its own size more, as in
/// an archive of NumPy.
const ALLOWANCE: u64 = 256 << 20;
/// See [`ALLOWANCE`].
const EXPANSION: u64 = 64;

/// What a file is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Parquet,
    Npz,
    Npy,
    /// Text, plain or gzip.
    Text,
}

impl Kind {
    /// # Errors
    /// If the bytes begin a file of a kind that is known and not read.
    fn of(start: &[u8]) -> Result<Self> {
        foreign::refuse(start)?;
        Ok(match start {
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            [b'P', b'K', 3 | 5, ..] => Self::Npz,
            [0x93, b'N', b'U', b'M', ..] => Self::Npy,
            _ => Self::Text,
        })
    }
}

/// A file that can be read from its start again and again.
pub(crate) struct Source {
    path: PathBuf,
    kind: Kind,
    /// All there is, if it came from a pipe or had to be unpacked.
    held: Option<Bytes>,
    opened: Instant,
}

impl Source {
    /// Opens what is at `path` and finds out what it is. Anything but a file on disk is read to
    /// its end, as it can be read only once. Errors name the file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::find(path).map_err(|error| match error.kind() {
            // The operating system's errors name their file already.
            ErrorKind::Io => error,
            _ => error.at(path.display()),
        })
    }

    fn find(path: &Path) -> Result<Self> {
        let unreadable = |e| Error::io("read", path, e);
        let opened = Instant::now();
        let mut file = File::open(path).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        if about.is_dir() {
            return Err(Error::new(ErrorKind::Dataset, "is a folder; name the file in it"));
        }
        let held = if about.is_file() { None } else { Some(hold(&mut file, path)?) };
        let mut source = Self { path: path.to_owned(), kind: Kind::Text, held, opened };
        let mut start = Vec::new();
        source.reader()?.take(START).read_to_end(&mut start).map_err(unreadable)?;
        source.kind = Kind::of(&start)?;
        if start.starts_with(&GZIP) {
            source.look_inside()?;
        }
        Ok(source)
    }

    /// Unpacks what is packed with gzip and no text: text is unpacked as it is read.
    fn look_inside(&mut self) -> Result<()> {
        let mut start = Vec::new();
        let read = MultiGzDecoder::new(self.reader()?).take(START).read_to_end(&mut start);
        self.kind = match (Kind::of(&start)?, read) {
            // What is damaged is told when it is read.
            (Kind::Text, _) | (_, Err(_)) => Kind::Text,
            (kind, Ok(_)) => kind,
        };
        if self.kind == Kind::Text {
            return Ok(());
        }
        let most = ALLOWANCE.saturating_add(self.length()?.saturating_mul(EXPANSION));
        self.held = Some(unpacked(self.reader()?, most)?);
        Ok(())
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Seconds since the file was opened.
    pub(crate) fn seconds(&self) -> f64 {
        self.opened.elapsed().as_secs_f64()
    }

    /// Number of bytes.
    pub(crate) fn length(&self) -> Result<u64> {
        let on_disk = || std::fs::metadata(&self.path).map(|about| about.len());
        let length = self.held.as_ref().map_or_else(on_disk, |held| Ok(held.len() as u64));
        length.map_err(|e| Error::io("read", &self.path, e))
    }

    /// Reads from the start.
    pub(crate) fn reader(&self) -> Result<Reader> {
        Ok(match &self.held {
            Some(held) => Reader::Memory(Cursor::new(held.clone())),
            None => Reader::Disk(BufReader::new(self.file()?)),
        })
    }

    /// The pieces that a reader of parquet asks for.
    pub(crate) fn pieces(&self) -> Result<PiecesOf> {
        Ok(match &self.held {
            Some(held) => PiecesOf::Memory(held.clone()),
            None => PiecesOf::Disk(self.file()?),
        })
    }

    fn file(&self) -> Result<File> {
        File::open(&self.path).map_err(|e| Error::io("read", &self.path, e))
    }
}

/// How gzip begins.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What is packed with gzip, of at most `most` bytes.
fn unpacked(packed: impl Read, most: u64) -> Result<Bytes> {
    let mut all = Vec::new();
    let mut source = MultiGzDecoder::new(packed).take(most + 1);
    source.read_to_end(&mut all).map_err(|e| unreadable(&e))?;
    if all.len() as u64 > most {
        let message = "unpacks out of proportion to its size; unpack it with `gunzip` first";
        return Err(Error::new(ErrorKind::Parse, message));
    }
    Ok(all.into())
}

/// Everything that comes out of a pipe or a terminal.
fn hold(source: &mut impl Read, path: &Path) -> Result<Bytes> {
    let unreadable = |e| Error::io("read", path, e);
    let mut all = Vec::new();
    source.take(MAX_LINE as u64).read_to_end(&mut all).map_err(unreadable)?;
    // A device that never ends, such as /dev/zero, must not fill the memory.
    if all.len() == MAX_LINE && all.iter().all(|&byte| byte == all[0]) {
        let message = "gives the same byte without end; name a file or a pipe with a table";
        return Err(Error::new(ErrorKind::Parse, message));
    }
    source.take(MOST_HELD).read_to_end(&mut all).map_err(unreadable)?;
    if all.len() as u64 >= MOST_HELD {
        let message = format!(
            "is no file on disk and gives more than {} GiB, which are kept in memory; save them \
             as a file and name that",
            MOST_HELD >> 30
        );
        return Err(Error::new(ErrorKind::Parse, message));
    }
    if all.is_empty() {
        let message = "gives nothing; a pipe can be read once only, so name another one for each \
                       table";
        return Err(Error::new(ErrorKind::Parse, message));
    }
    Ok(all.into())
}

/// A [`Source`] while it is read.
pub(crate) enum Reader {
    Disk(BufReader<File>),
    Memory(Cursor<Bytes>),
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Disk(file) => file.read(buffer),
            Self::Memory(bytes) => bytes.read(buffer),
        }
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Disk(file) => file.seek(to),
            Self::Memory(bytes) => bytes.seek(to),
        }
    }
}

/// A [`Source`] in the pieces that a reader of parquet asks for.
pub(crate) enum PiecesOf {
    Disk(File),
    Memory(Bytes),
}

impl Length for PiecesOf {
    fn len(&self) -> u64 {
        match self {
            Self::Disk(file) => Length::len(file),
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }
}

impl ChunkReader for PiecesOf {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(match self {
            Self::Disk(file) => Box::new(file.get_read(start)?),
            Self::Memory(bytes) => Box::new(bytes.get_read(start)?),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        match self {
            Self::Disk(file) => file.get_bytes(start, length),
            Self::Memory(bytes) => bytes.get_bytes(start, length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunks::tests::gzip;
    use super::*;
    use std::io::Write as _;

    fn put(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn kinds_are_told_apart_also_when_packed() {
        for (bytes, kind) in [
            (&b"a,b\n"[..], Kind::Text),
            (b"PAR1...", Kind::Parquet),
            (b"PK\x03\x04..", Kind::Npz),
            (b"\x93NUMPY\x01\x00", Kind::Npy),
            (b"", Kind::Text),
        ] {
            let (_folder, path) = put(bytes);
            assert_eq!(Source::open(&path).unwrap().kind(), kind);
            let (_folder, path) = put(&gzip(bytes));
            let source = Source::open(&path).unwrap();
            assert_eq!(source.kind(), kind);
            let mut all = Vec::new();
            source.reader().unwrap().read_to_end(&mut all).unwrap();
            assert_eq!(all == bytes, kind != Kind::Text, "only text stays packed");
        }
    }

    #[test]
    fn what_unpacks_out_of_proportion_is_refused() {
        let packed = gzip(&[0; 5000]);
        assert_eq!(unpacked(&packed[..], 5000).unwrap().len(), 5000);
        let text = unpacked(&packed[..], 4999).unwrap_err().to_string();
        assert!(text.contains("unpack it with `gunzip` first"), "{text}");
    }

    /// A pipe gives its bytes once, and they can be read twice.
    #[cfg(unix)]
    #[test]
    fn a_pipe_is_read_once_and_kept() {
        use std::os::fd::AsRawFd as _;
        let (reader, mut writer) = io::pipe().unwrap();
        let text = b"source,target\nann,bob\n".repeat(10_000);
        let sent = text.clone();
        let writing = std::thread::spawn(move || writer.write_all(&sent));
        let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
        let source = Source::open(&path).unwrap();
        writing.join().unwrap().unwrap();
        for _ in 0..2 {
            let mut all = Vec::new();
            source.reader().unwrap().read_to_end(&mut all).unwrap();
            assert!(all == text);
        }
        assert_eq!(source.length().unwrap(), text.len() as u64);
        let again = Source::open(&path).map(|_| ()).unwrap_err().to_string();
        assert!(again.contains("can be read once only"), "{again}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_without_end_is_refused() {
        let error = Source::open(Path::new("/dev/zero")).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("/dev/zero: gives the same byte without end"));
    }
}
