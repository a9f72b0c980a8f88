//! Event files for `TensorBoard`: the numbers of a run as curves that grow while it runs.
//!
//! A file is a list of records, each a length, a checksum of the length, the bytes of an `Event`
//! message and their checksum. The few fields of the message that are needed are put together
//! here, byte by byte; `TensorBoard`'s `event.proto` and `summary.proto` number them.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};
use crate::run::Record;

/// What the name of an event file starts with.
const PREFIX: &str = "events.out.tfevents.";
/// The version that makes readers drop, at a restart, what they saw of later steps.
const VERSION: &str = "brain.Event:2";

/// Writes the records of a run to an event file of its own. Each record is on the disk when
/// [`write`](Self::write) returns, so that it can be watched.
///
/// ```
/// use blnn::tensorboard::EventWriter;
/// let folder = tempfile::tempdir()?;
/// let writer = EventWriter::create(folder.path(), 0)?;
/// assert!(writer.path().file_name().unwrap().to_string_lossy().contains("tfevents"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    file: File,
}

impl EventWriter {
    /// Starts a new file in `folder`, which is made if it is not there. `epoch` is the number of
    /// epochs done before: `TensorBoard` forgets what older files say of later ones, as after a
    /// run that was killed some time after its last checkpoint.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(folder: &Path, epoch: usize) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
        let path = folder.join(next_name(folder)?);
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = opened.map_err(|e| Error::io("create", &path, e))?;
        let mut writer = Self { path, file };
        let mut bytes = frame(&event(0, &Message::new().text(3, VERSION)));
        if epoch > 0 {
            bytes.extend(frame(&restart(epoch as i64 + 1)));
        }
        writer.append(&bytes)?;
        Ok(writer)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the numbers of a record.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, record: &Record) -> Result<()> {
        let mut summary = Message::new();
        for (tag, value) in scalars(record) {
            summary = summary.message(1, &Message::new().text(1, &tag).float(2, value as f32));
        }
        let event = event(record.epoch as i64, &Message::new().message(5, &summary));
        self.append(&frame(&event))
    }

    /// In one write and past all buffers of ours, so that a reader never waits for half a record.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io("write", &self.path, e))
    }
}

/// Removes the event files in a folder, and the folder if nothing else is in it.
///
/// # Errors
/// If a file cannot be removed.
pub(crate) fn remove(folder: &Path) -> Result<()> {
    for name in event_files(folder)? {
        let path = folder.join(name);
        fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))?;
    }
    // Files of the user's in it are a reason to keep it.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// The names of the event files in a folder, none if there is no such folder.
fn event_files(folder: &Path) -> Result<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).map_err(|e| Error::io("list", folder, e))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter(|name| name.starts_with(PREFIX)).collect())
}

/// A name that sorts behind those of all event files there, which readers take in order: time in
/// seconds, then the number of files before.
fn next_name(folder: &Path) -> Result<String> {
    let before = event_files(folder)?;
    let second = |name: &String| name[PREFIX.len()..].split('.').next()?.parse::<u64>().ok();
    let latest = before.iter().filter_map(second).max().unwrap_or(0);
    let seconds = (now() as u64).max(latest);
    Ok(format!("{PREFIX}{seconds:010}.blnn.{:04}", before.len()))
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Names and values of what a record holds; the part before `/` is the chart's group.
fn scalars(record: &Record) -> Vec<(String, f64)> {
    let mut all = vec![
        ("loss/total".to_owned(), record.loss),
        ("loss/node".to_owned(), record.node_loss),
        ("loss/neighbour".to_owned(), record.neighbour_loss),
        ("schedule/learning_rate".to_owned(), record.learning_rate),
        ("schedule/ema_decay".to_owned(), record.ema_decay),
        ("time/seconds_per_epoch".to_owned(), record.seconds),
    ];
    if let Some(health) = &record.health {
        all.push(("embedding/effective_rank".to_owned(), health.effective_rank));
        all.push(("embedding/spread".to_owned(), health.spread));
    }
    all.extend(record.scores.iter().map(|(name, score)| (format!("scores/{name}"), *score)));
    all
}

/// An event at a step: the time, the step and what happened.
fn event(step: i64, what: &Message) -> Vec<u8> {
    let mut bytes = Message::new().double(1, now()).integer(2, step).0;
    bytes.extend(&what.0);
    bytes
}

/// The event that says: forget all from this step on.
fn restart(step: i64) -> Vec<u8> {
    const START: i64 = 1;
    event(step, &Message::new().message(7, &Message::new().integer(1, START)))
}

/// A protobuf message being put together, field by field.
struct Message(Vec<u8>);

impl Message {
    fn new() -> Self {
        Self(Vec::new())
    }

    /// A field's number and the kind of its value.
    fn key(mut self, field: u8, kind: u8) -> Self {
        self.0.push(field << 3 | kind);
        self
    }

    /// Seven bits a byte, the least first.
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    fn integer(self, field: u8, value: i64) -> Self {
        self.key(field, 0).varint(value.cast_unsigned())
    }

    fn double(self, field: u8, value: f64) -> Self {
        let mut message = self.key(field, 1);
        message.0.extend(value.to_le_bytes());
        message
    }

    fn float(self, field: u8, value: f32) -> Self {
        let mut message = self.key(field, 5);
        message.0.extend(value.to_le_bytes());
        message
    }

    fn bytes(self, field: u8, bytes: &[u8]) -> Self {
        let mut message = self.key(field, 2).varint(bytes.len() as u64);
        message.0.extend(bytes);
        message
    }

    fn text(self, field: u8, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u8, inner: &Self) -> Self {
        self.bytes(field, &inner.0)
    }
}

/// A record of the file: length, its checksum, the bytes, their checksum.
fn frame(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u64).to_le_bytes();
    let mut frame = length.to_vec();
    frame.extend(masked(crc32c(&length)).to_le_bytes());
    frame.extend(bytes);
    frame.extend(masked(crc32c(bytes)).to_le_bytes());
    frame
}

/// A checksum that may itself be part of what is summed: turned and shifted.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The Castagnoli polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| crc >> 8 ^ CRC_TABLE[(crc as u8 ^ byte) as usize];
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collapse::Health;
    use std::collections::BTreeMap;

    /// Vectors of RFC 3720, appendix B.4, and the usual check value.
    #[test]
    fn checksums_are_those_of_the_standard() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising), 0x46dd_794e);
        assert_eq!(crc32c(b""), 0);
        // As TensorFlow masks the checksum of eight zero bytes, the length of an empty record.
        assert_eq!(masked(crc32c(&[0; 8])), 0x0798_0329);
    }

    #[derive(Debug, Default, PartialEq)]
    struct Seen {
        step: u64,
        version: Option<String>,
        restart: bool,
        scalars: BTreeMap<String, f32>,
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    /// The fields of a message: number, value as bytes (of a varint: little-endian).
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let length = match key & 7 {
                0 => {
                    all.push((key >> 3, varint(&mut bytes).to_le_bytes().to_vec()));
                    continue;
                }
                1 => 8,
                5 => 4,
                2 => varint(&mut bytes) as usize,
                other => panic!("kind {other}"),
            };
            all.push((key >> 3, bytes[..length].to_vec()));
            bytes = &bytes[length..];
        }
        all
    }

    fn number<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.try_into().unwrap()
    }

    fn decode(event: &[u8]) -> Seen {
        let mut seen = Seen::default();
        for (field, value) in fields(event) {
            match field {
                1 => assert!(f64::from_le_bytes(number(&value)) > 1.6e9, "a time"),
                2 => seen.step = u64::from_le_bytes(number(&value)),
                3 => seen.version = Some(String::from_utf8(value).unwrap()),
                5 => seen.scalars = fields(&value).iter().map(|(_, v)| scalar(v)).collect(),
                7 => seen.restart = fields(&value)[0].1[0] == 1,
                other => panic!("field {other}"),
            }
        }
        seen
    }

    fn scalar(value: &[u8]) -> (String, f32) {
        let parts = fields(value);
        let tag = String::from_utf8(parts[0].1.clone()).unwrap();
        (tag, f32::from_le_bytes(number(&parts[1].1)))
    }

    /// Everything in a file, checksums verified.
    fn read(path: &Path) -> Vec<Seen> {
        let bytes = fs::read(path).unwrap();
        let mut rest = bytes.as_slice();
        let mut all = Vec::new();
        while !rest.is_empty() {
            let length = u64::from_le_bytes(number(&rest[..8])) as usize;
            let sum = |at: usize| u32::from_le_bytes(number(&rest[at..at + 4]));
            assert_eq!(sum(8), masked(crc32c(&rest[..8])));
            let event = &rest[12..12 + length];
            assert_eq!(sum(12 + length), masked(crc32c(event)));
            all.push(decode(event));
            rest = &rest[16 + length..];
        }
        all
    }

    fn record(epoch: usize) -> Record {
        Record {
            epoch,
            loss: 0.75,
            node_loss: 0.5,
            neighbour_loss: 0.25,
            learning_rate: 1e-3,
            ema_decay: 0.99,
            seconds: 0.125,
            health: None,
            scores: BTreeMap::new(),
            splits: None,
        }
    }

    #[test]
    fn records_are_there_as_soon_as_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = EventWriter::create(&folder.path().join("deep/er"), 0).unwrap();
        let seen = read(writer.path());
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].version.as_deref(), Some("brain.Event:2"));
        writer.write(&record(1)).unwrap();
        let mut full = record(300);
        full.health = Some(Health { effective_rank: 12.5, spread: 0.5, collapsed: false });
        full.scores.insert("accuracy".into(), 81.25);
        writer.write(&full).unwrap();
        let seen = read(writer.path());
        assert_eq!((seen.len(), seen[1].step, seen[2].step), (3, 1, 300));
        assert_eq!(seen[1].scalars.len(), 6);
        assert_eq!(seen[1].scalars["loss/neighbour"], 0.25);
        assert_eq!(seen[2].scalars["scores/accuracy"], 81.25);
        assert_eq!(seen[2].scalars["embedding/effective_rank"], 12.5);
        assert!(seen.iter().all(|event| !event.restart));
    }

    #[test]
    fn a_resumed_run_writes_a_later_file_that_takes_back_what_was_lost() {
        let folder = tempfile::tempdir().unwrap();
        let first = EventWriter::create(folder.path(), 0).unwrap();
        let second = EventWriter::create(folder.path(), 40).unwrap();
        let third = EventWriter::create(folder.path(), 60).unwrap();
        assert!(first.path() < second.path() && second.path() < third.path());
        let seen = read(second.path());
        assert_eq!((seen[1].restart, seen[1].step), (true, 41));
    }

    #[test]
    fn only_our_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let events = folder.path().join("tensorboard");
        drop(EventWriter::create(&events, 0).unwrap());
        fs::write(events.join("notes.txt"), "mine").unwrap();
        remove(&events).unwrap();
        assert_eq!(event_files(&events).unwrap(), [""; 0]);
        assert!(events.join("notes.txt").exists());
        fs::remove_file(events.join("notes.txt")).unwrap();
        remove(&events).unwrap();
        assert!(!events.exists());
        remove(&events).unwrap();
    }
}
