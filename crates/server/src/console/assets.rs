//! The few files that pages load, in the binary. Their names carry their digest, so that a browser
//! keeps them for as long as they are the same.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::page::Drawn;
use crate::error::{ApiError, Result};

struct Asset {
    stem: &'static str,
    ending: &'static str,
    kind: &'static str,
    text: &'static str,
}

const ALL: [Asset; 3] = [
    Asset {
        stem: "ui",
        ending: "css",
        kind: "text/css; charset=utf-8",
        text: include_str!("../../assets/ui.css"),
    },
    Asset {
        stem: "ui",
        ending: "js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("../../assets/ui.js"),
    },
    Asset {
        stem: "seal",
        ending: "svg",
        kind: "image/svg+xml",
        text: include_str!("../../assets/seal.svg"),
    },
];

static DIGESTS: LazyLock<[String; 3]> = LazyLock::new(|| {
    ALL.map(|it| {
        let digest = Sha256::digest(it.text.as_bytes());
        digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    })
});

/// Where a file is served, with its digest: `/ui/ui.0123456789ab.css`.
pub fn path(name: &str) -> String {
    let all = ALL.iter().zip(DIGESTS.iter());
    let mut found = all.filter(|(it, _)| format!("{}.{}", it.stem, it.ending) == name);
    found.next().map_or_else(
        || format!("/ui/{name}"),
        |(it, digest)| format!("/ui/{}.{digest}.{}", it.stem, it.ending),
    )
}

pub async fn serve(Path(file): Path<String>, headers: HeaderMap) -> Result<Response> {
    let whole = format!("/ui/{file}");
    let mut all = ALL.iter().zip(DIGESTS.iter());
    let found = all.find(|(it, _)| {
        let plain = format!("{}.{}", it.stem, it.ending);
        whole == path(&plain) || file == plain
    });
    let Some((asset, digest)) = found else { return Err(ApiError::NoRoute) };
    let tag = format!("\"{digest}\"");
    let known =
        headers.get(header::IF_NONE_MATCH).is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let mut response =
        if known { StatusCode::NOT_MODIFIED.into_response() } else { asset.text.into_response() };
    let named = file.contains(&**digest);
    let kept = if named { "public, max-age=31536000, immutable" } else { "no-cache" };
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        out.insert(header::ETAG, tag);
    }
    response.extensions_mut().insert(Drawn);
    Ok(response)
}
