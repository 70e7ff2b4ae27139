//! The text of a copy, line by line.

use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{ArchiveError, Copied};

const FORMAT: u32 = 1;
/// No row of ours is longer.
const LINE_MAX: u64 = 256 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    chancery_backup: u32,
    migration: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub table: String,
    pub columns: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    rows: u64,
    sha256: String,
}

pub struct Writer<W> {
    into: W,
    digest: Sha256,
    copied: Copied,
}

impl<W: Write> Writer<W> {
    pub fn new(into: W, migration: i64) -> Result<Writer<W>, ArchiveError> {
        let copied = Copied { tables: 0, rows: 0 };
        let mut writer = Writer { into, digest: Sha256::new(), copied };
        writer.line(&Head { chancery_backup: FORMAT, migration })?;
        Ok(writer)
    }

    pub fn table(&mut self, table: &Table) -> Result<(), ArchiveError> {
        self.copied.tables += 1;
        self.line(table)
    }

    pub fn row(&mut self, values: &[Value]) -> Result<(), ArchiveError> {
        self.copied.rows += 1;
        self.line(&values.iter().map(shown).collect::<Vec<_>>())
    }

    pub fn end(mut self) -> Result<(Copied, W), ArchiveError> {
        let sha256 = hex(&self.digest.clone().finalize());
        self.line(&End { rows: self.copied.rows, sha256 })?;
        self.into.flush().map_err(ArchiveError::Write)?;
        Ok((self.copied, self.into))
    }

    fn line(&mut self, said: &impl Serialize) -> Result<(), ArchiveError> {
        let mut line = serde_json::to_vec(said).map_err(|it| ArchiveError::Write(it.into()))?;
        line.push(b'\n');
        self.digest.update(&line);
        self.into.write_all(&line).map_err(ArchiveError::Write)
    }
}

fn shown(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Int(it) => (*it).into(),
        Value::Text(it) => it.as_str().into(),
        Value::Bytes(it) => serde_json::json!({ "hex": hex(it) }),
    }
}

/// What comes next in a copy.
#[derive(Debug)]
pub enum Next {
    Table(Table),
    Row(Vec<Value>),
    /// All was there, and all as it was written.
    End(Copied),
}

pub struct Reader<R> {
    from: R,
    digest: Sha256,
    copied: Copied,
    line: u64,
}

impl<R: BufRead> Reader<R> {
    pub fn new(from: R, migration: i64) -> Result<Reader<R>, ArchiveError> {
        let copied = Copied { tables: 0, rows: 0 };
        let mut reader = Reader { from, digest: Sha256::new(), copied, line: 0 };
        let line = reader.text()?;
        let head: Head = serde_json::from_slice(&line).map_err(|it| reader.wrong(&it))?;
        if head.chancery_backup != FORMAT {
            return Err(reader.wrong(&format!("format {} is not known", head.chancery_backup)));
        }
        if head.migration != migration {
            return Err(ArchiveError::Version { found: head.migration, ours: migration });
        }
        reader.digest.update(&line);
        Ok(reader)
    }

    pub fn next(&mut self) -> Result<Next, ArchiveError> {
        let line = self.text()?;
        let said: serde_json::Value =
            serde_json::from_slice(&line).map_err(|it| self.wrong(&it))?;
        if said.get("sha256").is_some() {
            let end: End = serde_json::from_value(said).map_err(|it| self.wrong(&it))?;
            let found = hex(&self.digest.clone().finalize());
            if found != end.sha256 || end.rows != self.copied.rows {
                return Err(ArchiveError::Changed);
            }
            return Ok(Next::End(self.copied));
        }
        self.digest.update(&line);
        if let serde_json::Value::Array(values) = said {
            self.copied.rows += 1;
            let values = values.into_iter().map(|it| read(it).map_err(|it| self.wrong(&it)));
            return Ok(Next::Row(values.collect::<Result<_, _>>()?));
        }
        self.copied.tables += 1;
        Ok(Next::Table(serde_json::from_value(said).map_err(|it| self.wrong(&it))?))
    }

    pub fn wrong(&self, detail: &dyn std::fmt::Display) -> ArchiveError {
        ArchiveError::Line { line: self.line, detail: detail.to_string() }
    }

    fn text(&mut self) -> Result<Vec<u8>, ArchiveError> {
        let mut line = Vec::new();
        self.line += 1;
        let mut limited = std::io::Read::take(&mut self.from, LINE_MAX);
        limited.read_until(b'\n', &mut line).map_err(ArchiveError::Read)?;
        if line.last() != Some(&b'\n') {
            return Err(ArchiveError::Short);
        }
        Ok(line)
    }
}

fn read(value: serde_json::Value) -> Result<Value, String> {
    match value {
        serde_json::Value::Null => Ok(Value::Null),
        serde_json::Value::String(it) => Ok(Value::Text(it)),
        serde_json::Value::Number(it) => {
            it.as_i64().map(Value::Int).ok_or_else(|| format!("`{it}` is no whole number"))
        }
        serde_json::Value::Object(it) => match it.get("hex").and_then(|it| it.as_str()) {
            Some(text) => unhex(text).map(Value::Bytes).ok_or_else(|| "not hex".to_owned()),
            None => Err("an object is not a value".to_owned()),
        },
        serde_json::Value::Bool(_) | serde_json::Value::Array(_) => {
            Err(format!("`{value}` is not a value"))
        }
    }
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |it: u8| char::from(it).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), 7).unwrap();
        let columns = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        writer.table(&Table { table: "t".to_owned(), columns }).unwrap();
        let row = [
            Value::Null,
            Value::Int(i64::MIN),
            Value::Text("\t\\.\n\u{202e}\"".to_owned()),
            Value::Bytes(vec![0, 255]),
        ];
        writer.row(&row).unwrap();
        writer.end().unwrap().1
    }

    fn read_all(text: &[u8]) -> Result<Vec<Value>, ArchiveError> {
        let mut reader = Reader::new(text, 7)?;
        let mut rows = Vec::new();
        loop {
            match reader.next()? {
                Next::Table(_) => {}
                Next::Row(values) => rows.extend(values),
                Next::End(copied) => {
                    assert_eq!(copied, Copied { tables: 1, rows: 1 });
                    return Ok(rows);
                }
            }
        }
    }

    #[test]
    fn every_value_is_read_as_it_was_written() {
        let rows = read_all(&sheet()).unwrap();
        assert_eq!(rows[1], Value::Int(i64::MIN));
        assert_eq!(rows[2], Value::Text("\t\\.\n\u{202e}\"".to_owned()));
        assert_eq!((&rows[0], &rows[3]), (&Value::Null, &Value::Bytes(vec![0, 255])));
    }

    #[test]
    fn a_copy_that_was_cut_or_changed_anywhere_is_refused() {
        let whole = sheet();
        for length in 0..whole.len() {
            assert!(read_all(&whole[..length]).is_err(), "{length}");
        }
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            assert!(read_all(&changed).is_err(), "{place}");
        }
    }

    #[test]
    fn a_copy_of_another_version_says_of_which() {
        let refused = Reader::new(&*sheet(), 8).err().unwrap().to_string();
        assert!(refused.contains("migration 7") && refused.contains("has 8"), "{refused}");
    }
}
