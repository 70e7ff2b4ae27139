//! What an issuer says of itself, at `…/.well-known/openid-configuration`.

use reqwest::Url;
use serde::Deserialize;

use super::IssuerError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) jwks_uri: Url,
    pub(super) userinfo_endpoint: Option<Url>,
    /// Whether the client's secret goes into the form, where the usual header is not taken.
    pub(super) secret_in_form: bool,
    /// Whether it says who it is whenever it sends somebody back.
    pub(super) names_itself: bool,
}

#[derive(Debug, Deserialize)]
struct Raw {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Document {
    /// Where the document of an issuer is.
    pub(super) fn place(issuer: &str) -> Result<Url, IssuerError> {
        let at = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        safe("issuer", &at)
    }

    pub(super) fn read(issuer: &str, text: &[u8]) -> Result<Document, IssuerError> {
        let raw: Raw = serde_json::from_slice(text)
            .map_err(|_| IssuerError::Unusable("its discovery document is none".to_owned()))?;
        // To the letter: who answers for another is not who was asked.
        if raw.issuer != issuer {
            let detail = "its discovery document is of another issuer".to_owned();
            return Err(IssuerError::Untrue(detail));
        }
        let has = |list: &Option<Vec<String>>, it: &str| {
            list.as_ref().is_none_or(|list| list.iter().any(|known| known == it))
        };
        if !has(&raw.code_challenge_methods_supported, "S256") {
            return Err(IssuerError::Unusable("it does not take PKCE with S256".to_owned()));
        }
        let userinfo = raw.userinfo_endpoint.as_deref();
        Ok(Document {
            authorization_endpoint: safe("authorization_endpoint", &raw.authorization_endpoint)?,
            token_endpoint: safe("token_endpoint", &raw.token_endpoint)?,
            jwks_uri: safe("jwks_uri", &raw.jwks_uri)?,
            userinfo_endpoint: userinfo.map(|it| safe("userinfo_endpoint", it)).transpose()?,
            secret_in_form: !has(&raw.token_endpoint_auth_methods_supported, "client_secret_basic"),
            names_itself: raw.authorization_response_iss_parameter_supported,
        })
    }

    /// Where people are sent. What we ask for stands last and once: an endpoint that brings the
    /// same along could say something else by it.
    pub(super) fn authorization_url(&self, asked: &[(&str, &str)]) -> Result<String, IssuerError> {
        let mut url = self.authorization_endpoint.clone();
        if url.query_pairs().any(|(name, _)| asked.iter().any(|it| it.0 == name)) {
            let detail = "its authorization endpoint answers for us".to_owned();
            return Err(IssuerError::Unusable(detail));
        }
        url.query_pairs_mut().extend_pairs(asked);
        Ok(url.into())
    }
}

fn safe(what: &str, url: &str) -> Result<Url, IssuerError> {
    let parsed = Url::parse(url).ok().filter(|_| is_safe(url));
    parsed.ok_or_else(|| IssuerError::Unusable(format!("`{what}` is not an `https://` URL")))
}

/// Whether what is sent there stays between us: TLS, or this machine.
pub fn is_safe(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let here = host == "localhost"
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    let spoken = url.scheme() == "https" || url.scheme() == "http" && here;
    spoken && plain && !host.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn document() -> Value {
        json!({
            "issuer": "https://id.example",
            "authorization_endpoint": "https://id.example/authorize?tenant=a",
            "token_endpoint": "https://id.example/token",
            "jwks_uri": "https://keys.example/jwks",
        })
    }

    fn read(change: Value) -> Result<Document, String> {
        let mut document = document();
        for (name, value) in change.as_object().unwrap() {
            document[name] = value.clone();
        }
        let text = document.to_string();
        Document::read("https://id.example", text.as_bytes()).map_err(|it| it.to_string())
    }

    #[test]
    fn a_document_is_of_the_issuer_that_was_asked() {
        assert!(read(json!({})).is_ok());
        for other in ["https://id.example/", "https://ID.example", "https://evil.example", ""] {
            let said = read(json!({ "issuer": other })).unwrap_err();
            assert!(said.contains("another issuer"), "{other}: {said}");
        }
    }

    #[test]
    fn nothing_is_sent_where_others_can_read_it() {
        for what in ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"] {
            for url in ["http://id.example/x", "ftp://id.example", "javascript:alert(1)", "/x", ""]
            {
                assert!(read(json!({ what: url })).is_err(), "{what}: {url}");
            }
            assert!(read(json!({ what: "http://127.0.0.1:9/x" })).is_ok(), "{what}");
        }
        for (url, expected) in [
            ("https://id.example/realms/a", true),
            ("http://localhost:8080", true),
            ("http://[::1]:8080", true),
            ("http://localhost.evil.example", false),
            ("http://127.0.0.1.evil.example", false),
            ("https://user:key@id.example", false),
            ("https://id.example/#x", false),
        ] {
            assert_eq!(is_safe(url), expected, "{url}");
        }
    }

    #[test]
    fn what_is_asked_for_is_added_to_what_the_endpoint_brings() {
        let url = read(json!({})).unwrap().authorization_url(&[("state", "a b&c")]).unwrap();
        assert_eq!(url, "https://id.example/authorize?tenant=a&state=a+b%26c");
        let loaded = "https://id.example/authorize?state=theirs";
        let document = read(json!({ "authorization_endpoint": loaded })).unwrap();
        assert!(document.authorization_url(&[("state", "ours")]).is_err());
    }

    #[test]
    fn an_issuer_without_pkce_is_not_used() {
        assert!(read(json!({ "code_challenge_methods_supported": ["S256", "plain"] })).is_ok());
        assert!(read(json!({ "code_challenge_methods_supported": ["plain"] })).is_err());
    }

    #[test]
    fn the_secret_goes_into_the_form_only_where_the_header_is_not_taken() {
        let by = |methods: Value| {
            read(json!({ "token_endpoint_auth_methods_supported": methods }))
                .unwrap()
                .secret_in_form
        };
        assert!(!read(json!({})).unwrap().secret_in_form);
        assert!(!by(json!(["client_secret_post", "client_secret_basic"])));
        assert!(by(json!(["client_secret_post"])));
    }
}
