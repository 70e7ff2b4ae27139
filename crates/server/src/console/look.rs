//! In which language and in which light somebody reads, and whether single letters are keys to
//! them: a cookie each, else what their browser asks for.

use axum::Form;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::words::{EN, Words, ZH};
use super::{form, page};
use crate::error::ApiError;
use crate::router::App;

const LANGUAGE: &str = "chancery_language";
const THEME: &str = "chancery_theme";
const KEYS: &str = "chancery_keys";
/// A year: it is a taste, not a secret.
const KEPT_SECONDS: u32 = 365 * 24 * 60 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub language: Language,
    pub theme: Theme,
    /// Whether a letter alone does something. Who speaks to their machine turns it off.
    pub keys: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    English,
    Chinese,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Whatever the machine is set to.
    System,
    Light,
    Dark,
}

impl Look {
    pub fn of(headers: &HeaderMap) -> Look {
        let language = match cookie(headers, LANGUAGE) {
            Some("en") => Language::English,
            Some("zh") => Language::Chinese,
            _ => asked_for(headers),
        };
        let theme = match cookie(headers, THEME) {
            Some("light") => Theme::Light,
            Some("dark") => Theme::Dark,
            _ => Theme::System,
        };
        Look { language, theme, keys: cookie(headers, KEYS) != Some("off") }
    }

    pub fn words(self) -> &'static Words {
        match self.language {
            Language::English => &EN,
            Language::Chinese => &ZH,
        }
    }

    /// As `<html lang>` says it.
    pub fn tag(self) -> &'static str {
        match self.language {
            Language::English => "en",
            Language::Chinese => "zh-Hans",
        }
    }
}

impl Language {
    pub fn coded(code: &str) -> Option<Language> {
        [Language::English, Language::Chinese].into_iter().find(|it| it.code() == code)
    }

    pub fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh",
        }
    }
}

impl Theme {
    pub fn as_str(self) -> &'static str {
        match self {
            Theme::System => "system",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Look {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Look, Self::Rejection> {
        Ok(Look::of(&parts.headers))
    }
}

/// Of the two languages, the one that comes first in what the browser asks for.
fn asked_for(headers: &HeaderMap) -> Language {
    let asked = headers.get(header::ACCEPT_LANGUAGE).and_then(|it| it.to_str().ok());
    let mut tags = asked.unwrap_or_default().split(',').map(|it| it.trim().to_ascii_lowercase());
    match tags.find(|it| it.starts_with("zh") || it.starts_with("en")) {
        Some(tag) if tag.starts_with("zh") => Language::Chinese,
        _ => Language::English,
    }
}

/// The value of a cookie.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|it| it.to_str().ok());
    let mut pairs = all.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    pairs.find(|(given, _)| *given == name).map(|(_, value)| value)
}

#[derive(Debug, Deserialize)]
pub struct Wanted {
    language: Option<String>,
    theme: Option<String>,
    keys: Option<String>,
    back: Option<String>,
}

/// Keeps a taste. It is nobody's secret, so whoever asks from our own pages may.
pub async fn change(
    State(app): State<App>,
    headers: HeaderMap,
    Form(wanted): Form<Wanted>,
) -> Result<Response, ApiError> {
    let one_of =
        |given: Option<String>, known: &[&str]| given.filter(|it| known.contains(&it.as_str()));
    let language = one_of(wanted.language, &["en", "zh"]).map(|it| (LANGUAGE, it));
    let theme = one_of(wanted.theme, &["system", "light", "dark"]).map(|it| (THEME, it));
    let keys = one_of(wanted.keys, &["on", "off"]).map(|it| (KEYS, it));
    let back = form::own_path(wanted.back.as_deref().unwrap_or("/"));
    let mut response = Redirect::to(back).into_response();
    for (name, value) in language.into_iter().chain(theme).chain(keys) {
        keep(&app, &headers, &mut response, name, &value)?;
    }
    Ok(response)
}

/// Goes on in another language.
pub fn speak(
    app: &App,
    headers: &HeaderMap,
    response: &mut Response,
    language: Language,
) -> Result<(), ApiError> {
    keep(app, headers, response, LANGUAGE, language.code())
}

fn keep(
    app: &App,
    headers: &HeaderMap,
    response: &mut Response,
    name: &str,
    value: &str,
) -> Result<(), ApiError> {
    let secure = if app.is_tls() || page::is_https(headers) { "; Secure" } else { "" };
    let text = format!(
        "{name}={value}; Path=/; Max-Age={KEPT_SECONDS}; HttpOnly; SameSite=Strict{secure}"
    );
    page::set_cookie(response, &text)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn look(cookie: &'static str, asked: &'static str) -> (Language, Theme) {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_static(cookie));
        headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(asked));
        let it = Look::of(&headers);
        (it.language, it.theme)
    }

    #[test]
    fn a_cookie_beats_the_browser_and_the_browser_beats_english() {
        assert_eq!(look("", ""), (Language::English, Theme::System));
        assert_eq!(look("", "de, zh-CN;q=0.9, en;q=0.8").0, Language::Chinese);
        assert_eq!(look("", "en-GB,zh").0, Language::English);
        assert_eq!(
            look("a=b; chancery_language=zh; chancery_theme=dark", "en"),
            (Language::Chinese, Theme::Dark)
        );
        assert_eq!(look("chancery_language=<b>; chancery_theme=x", "fr").1, Theme::System);
    }
}
