//! The vectors in an answer, each in the place of its text.

use chancery_domain::memory::vector::Vector;
use serde_json::Value;

use crate::model::exchange::{Progress, Reading};
use crate::model::fault::Fault;
use crate::model::sse;

/// More than any model has.
const DIMENSIONS_MAX: usize = 16_384;

pub(super) struct Answer {
    texts: usize,
    dimensions: Option<u32>,
    vectors: Option<Vec<Option<Vector>>>,
}

impl Answer {
    pub(super) fn new(texts: usize, dimensions: Option<u32>) -> Answer {
        Answer { texts, dimensions, vectors: None }
    }

    fn vectors(&self, document: &Value) -> Result<Vec<Option<Vector>>, String> {
        let data = document["data"].as_array().ok_or("it has no list `data`")?;
        if data.len() != self.texts {
            return Err(format!("{} vectors for {} texts", data.len(), self.texts));
        }
        let mut vectors: Vec<Option<Option<Vector>>> = vec![None; self.texts];
        let mut dimensions = self.dimensions.map(|it| it as usize);
        for (place, item) in data.iter().enumerate() {
            let index = item["index"].as_u64().map_or(place, |it| it as usize);
            let said: Option<Vec<f32>> = item["embedding"]
                .as_array()
                .map(|it| it.iter().map(|it| it.as_f64().unwrap_or(f64::NAN) as f32).collect());
            let said = said.ok_or_else(|| format!("vector {index} is no list of numbers"))?;
            let expected = *dimensions.get_or_insert(said.len());
            if said.len() != expected || expected > DIMENSIONS_MAX {
                return Err(format!(
                    "vector {index} has {} dimensions, not {expected}",
                    said.len()
                ));
            }
            match vectors.get_mut(index) {
                Some(free @ None) => *free = Some(Vector::of(&said)),
                _ => {
                    return Err(format!(
                        "a vector for text {index}, which has none or one already"
                    ));
                }
            }
        }
        Ok(vectors.into_iter().flatten().collect())
    }
}

impl Reading for Answer {
    type Whole = Vec<Option<Vector>>;

    fn event(&mut self, _: &sse::Event) -> Result<Progress, Fault> {
        Err(Fault::Malformed("a stream where one document was asked for".to_owned()))
    }

    fn document(&mut self, document: &Value) -> Result<(), Fault> {
        if let Some(error) = document.get("error").filter(|it| !it.is_null()) {
            return Err(Fault::of_error(error));
        }
        self.vectors = Some(self.vectors(document).map_err(Fault::Malformed)?);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.vectors.is_some()
    }

    fn whole(self) -> Result<Vec<Option<Vector>>, Fault> {
        self.vectors.ok_or_else(|| Fault::Malformed("there is no answer".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(texts: usize, dimensions: Option<u32>, data: Value) -> Result<usize, String> {
        let read = Answer::new(texts, dimensions).vectors(&json!({"data": data}));
        read.map(|it| it.iter().flatten().count())
    }

    #[test]
    fn vectors_are_taken_by_their_index_and_only_if_they_fit() {
        let one = |index: u64, embedding: Value| json!({"index": index, "embedding": embedding});
        let two = json!([one(1, json!([0.0, 1.0])), one(0, json!([1.0, 0.0]))]);
        let read_two = Answer::new(2, None).vectors(&json!({"data": two})).unwrap();
        assert_eq!(read_two[0], Vector::of(&[1.0, 0.0]));
        assert_eq!(read_two[1], Vector::of(&[0.0, 1.0]));
        assert_eq!(read(2, Some(2), two.clone()), Ok(2));
        // One that points nowhere is there, and is nothing.
        assert_eq!(read(1, None, json!([one(0, json!([0.0, 0.0]))])), Ok(0));
        for (texts, dimensions, data) in [
            (1, None, two.clone()),
            (2, Some(3), two),
            (2, None, json!([one(0, json!([1.0])), one(0, json!([1.0]))])),
            (2, None, json!([one(0, json!([1.0])), one(7, json!([1.0]))])),
            (2, None, json!([one(0, json!([1.0])), one(1, json!([1.0, 2.0]))])),
            (1, None, json!([one(0, json!("AACAPw=="))])),
            (1, None, json!("none")),
        ] {
            assert!(read(texts, dimensions, data.clone()).is_err(), "{data}");
        }
    }
}
