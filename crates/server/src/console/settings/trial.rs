//! A model is asked for one word.

use std::time::{Duration, Instant};

use chancery_runtime::model::try_out;

use crate::console::html::{line, shown};
use crate::console::ruling::sentence;
use crate::console::words::{Words, fill};
use crate::error::{ApiError, Result};
use crate::router::App;

/// Somebody waits for the page.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came of it. All text in it is ready for a page.
#[derive(Debug)]
pub struct Tried {
    pub name: String,
    pub model: String,
    pub said: String,
    pub milliseconds: u128,
    pub failed: bool,
}

pub async fn of(app: &App, name: &str, w: &'static Words) -> Result<Tried> {
    let known = app.about.models.iter().find(|it| it.name == name && it.is_used());
    let Some(known) = known else {
        return Err(ApiError::NotFound { what: "model", id: name.chars().take(64).collect() });
    };
    let tier = known.tiers.first().map_or("", String::as_str);
    let began = Instant::now();
    let asked = try_out(&**app.models.for_tier(tier));
    let (model, said, failed) = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(reply)) => (reply.model, reply.text, false),
        Ok(Err(error)) => (String::new(), sentence(&error.to_string(), w), true),
        Err(_) => {
            let seconds = PATIENCE.as_secs().to_string();
            (String::new(), fill(w.model_silent, &[("n", &seconds)]), true)
        }
    };
    Ok(Tried {
        name: line(name),
        model: line(&model),
        said: shown(&said),
        milliseconds: began.elapsed().as_millis(),
        failed,
    })
}
