//! A model's stream, whole and in pieces: doors for the fuzzer.

use super::exchange::{Progress, Reading};
use super::sse::Decoder;

const LIMIT: usize = 4096;

pub fn openai(data: &[u8]) {
    same_however_cut(data, || super::openai::reading("m"));
}

pub fn anthropic(data: &[u8]) {
    same_however_cut(data, || super::anthropic::reading("m"));
}

/// The first byte says how the rest is cut. What is read must not depend on it.
fn same_however_cut<R: Reading>(data: &[u8], make: impl Fn() -> R)
where
    R::Whole: std::fmt::Debug,
{
    let Some((cut, stream)) = data.split_first() else { return };
    let whole = read(make(), std::iter::once(stream));
    let pieces = read(make(), stream.chunks(usize::from(*cut).max(1)));
    assert_eq!(whole, pieces);
    if let Ok(document) = serde_json::from_slice(stream) {
        let mut reading = make();
        if reading.document(&document).is_ok() && reading.is_complete() {
            let _ = reading.whole();
        }
    }
}

fn read<'a, R: Reading>(mut reading: R, pieces: impl Iterator<Item = &'a [u8]>) -> String
where
    R::Whole: std::fmt::Debug,
{
    let mut decoder = Decoder::new(LIMIT);
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_event() {
                Ok(None) => break,
                Ok(Some(event)) => {
                    assert!(event.data.len() <= LIMIT, "an event of {} bytes", event.data.len());
                    match reading.event(&event) {
                        Ok(Progress::More) => {}
                        Ok(Progress::Done) => return end(reading),
                        Err(fault) => return format!("{fault:?}"),
                    }
                }
                Err(error) => return format!("{error:?}"),
            }
        }
    }
    end(reading)
}

fn end<R: Reading>(reading: R) -> String
where
    R::Whole: std::fmt::Debug,
{
    if reading.is_complete() { format!("{:?}", reading.whole()) } else { "broken off".to_owned() }
}
